# kiln: make, make demo, make check, make check-full, make bench, make lint, make install

PREFIX   ?= /usr/local
CC       ?= gcc

OPT      ?= -O2 -g
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wformat=2 -Werror
# Folders of one build: OBJ for objects, BIN for programs (the sanitizer build has its own).
OBJ      ?= obj
BIN      ?= bin

PKGS_common   := jansson smartcols
PKGS_elfcheck := libelf libdw
PKGS_launcher := numa
PKGS_bench    := gsl libmariadb
ALL_PKGS := $(PKGS_common) $(PKGS_elfcheck) $(PKGS_launcher) $(PKGS_bench)

# pkg-config is asked once, and only when something is compiled: 'make deps' must run without it.
CPPFLAGS += -I. -D_GNU_SOURCE $(shell pkg-config --cflags $(ALL_PKGS) 2>/dev/null)
CFLAGS   += -std=gnu17 $(OPT) $(WARN) -pthread
libs      = $(shell pkg-config --libs $(1) 2>/dev/null)

# A folder is a library of all its files but the *_main.c; the linker takes from it what is used.
lib       = $(OBJ)/lib$(1).a
objects   = $(patsubst %.c,$(OBJ)/%.o,$(filter-out $(wildcard $(1)/*_main.c),$(wildcard $(1)/*.c)))
COMMON   := $(call lib,common)
ELFCHECK := $(call lib,elfcheck) $(COMMON)
BUILDER  := $(call lib,builder) $(ELFCHECK)
LAUNCHER := $(call lib,launcher) $(ELFCHECK)
BENCH    := $(call lib,bench) $(LAUNCHER)

PROGRAMS := kiln kiln-build kiln-check kiln-launch kiln-bench kiln-compare kiln-report

LIBS_COMMON := -linih
all: $(PROGRAMS:%=$(BIN)/%)

$(BIN)/kiln: $(OBJ)/common/kiln_main.o $(COMMON)
$(BIN)/kiln-build: $(OBJ)/builder/build_main.o $(BUILDER)
$(BIN)/kiln-check: $(OBJ)/elfcheck/check_main.o $(ELFCHECK)
$(BIN)/kiln-launch: $(OBJ)/launcher/launch_main.o $(LAUNCHER)
$(BIN)/kiln-bench: $(OBJ)/bench/bench_main.o $(BENCH)
$(BIN)/kiln-compare: $(OBJ)/bench/compare_main.o $(BENCH)
$(BIN)/kiln-report: $(OBJ)/bench/report_main.o $(BENCH)

LIBS_kiln         := $(call libs,$(PKGS_common))
LIBS_kiln-check   := $(call libs,$(PKGS_common) $(PKGS_elfcheck))
LIBS_kiln-build   := $(LIBS_kiln-check)
LIBS_kiln-launch  := $(LIBS_kiln-check) $(call libs,$(PKGS_launcher)) -lhugetlbfs
LIBS_kiln-bench   := $(LIBS_kiln-launch) $(call libs,$(PKGS_bench))
LIBS_kiln-compare := $(LIBS_kiln-bench)
LIBS_kiln-report  := $(LIBS_kiln-bench)

# Each program is linked with what it needs and nothing else.
$(PROGRAMS:%=$(BIN)/%):
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(LIBS_$(@F)) $(LIBS_COMMON)

define archive
$(call lib,$(1)): $(call objects,$(1))
	@mkdir -p $$(@D)
	@rm -f $$@
	$(AR) rcs $$@ $$^
endef
$(foreach folder,common elfcheck builder launcher bench,$(eval $(call archive,$(folder))))

$(OBJ)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)

clean:
	rm -rf obj bin

.PHONY: all clean
.SECONDARY:
