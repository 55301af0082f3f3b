# kiln: make, make demo, make check, make check-full, make check-vm, make fuzz, make bench, make lint,
# make install

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

HELPERS  := libkiln-remap.so

LIBS_COMMON := -linih
all: $(PROGRAMS:%=$(BIN)/%) $(HELPERS:%=$(BIN)/%)

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
LIBS_kiln-launch  := $(LIBS_kiln-check) $(call libs,$(PKGS_launcher))
LIBS_kiln-bench   := $(LIBS_kiln-launch) $(call libs,$(PKGS_bench))
LIBS_kiln-compare := $(LIBS_kiln-bench)
LIBS_kiln-report  := $(LIBS_kiln-bench)

# Each program is linked with what it needs and nothing else.
$(PROGRAMS:%=$(BIN)/%):
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(LIBS_$(@F)) $(LIBS_COMMON)

# Preloaded in servers: needs libc only, exports nothing, and is never built with sanitizers.
$(BIN)/libkiln-remap.so: $(wildcard remap/*.[ch])
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -std=gnu17 -O2 -g $(WARN) -fPIC -fvisibility=hidden $(LDFLAGS) -shared \
	    -Wl,-z,now,-z,defs,--as-needed -o $@ $(filter %.c,$^)

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

# --- packages (Debian 12) ---

# What make needs, what make check needs beside it, what a source build needs beside it.
DEPS_build := gcc make pkg-config libelf-dev libdw-dev libjansson-dev libinih-dev libsmartcols-dev \
    libnuma-dev libgsl-dev default-libmysqlclient-dev
DEPS_check := $(DEPS_build) libcmocka-dev bats jq clang libclang-rt-14-dev lld mold llvm binutils elfutils dwz patchelf \
    checksec devscripts libhugetlbfs0 libhugetlbfs-dev libhugetlbfs-bin mariadb-server-core mariadb-client-core man-db libmariadb3 libjemalloc2 cmake ninja-build ccache g++ \
    python3-minimal procps util-linux
DEPS_source := $(DEPS_build) g++ cmake ninja-build ccache bison dpkg-dev libfmt-dev libncurses-dev \
    libpcre2-dev zlib1g-dev libssl-dev libaio-dev liburing-dev libhugetlbfs0 libhugetlbfs-bin \
    libmariadb3 binutils
DEPS_full := $(DEPS_check) $(DEPS_source)
DEPS_vm := $(DEPS_build) qemu-system-x86 acpica-tools busybox-static cpio gzip jq libhugetlbfs0
DEPS_fuzz := $(DEPS_build) clang lld mold libclang-rt-14-dev
DEPS_bench := $(DEPS_build) elfutils binutils checksec devscripts
DEPS_lint := clang-format clang-tidy cppcheck shellcheck

SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
# Asks apt only when something is missing.
deps-%:
	@missing=; for p in $(DEPS_$*); do \
	    dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'install ok' || missing="$$missing $$p"; \
	done; \
	if [ -n "$$missing" ]; then echo "installing:$$missing"; \
	    $(SUDO) apt-get update -q && \
	    $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $$missing; \
	fi

# --- tests ---

UNIT       := $(patsubst tests/unit/%.c,$(OBJ)/tests/%,$(wildcard tests/unit/test_*.c))
LIBS_tests := $(LIBS_kiln-bench) $(call libs,cmocka)
unit: $(UNIT)
$(OBJ)/tests/%: $(OBJ)/tests/unit/%.o $(call lib,builder) $(BENCH)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(LIBS_tests) $(LIBS_COMMON)

SANITIZE := OBJ=obj/asan BIN=obj/asan/bin OPT="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -Wno-format-truncation"

# Everything in a fresh make, so that packages that were just installed are seen.
check: deps-check
	+$(MAKE) --no-print-directory check-built
check-built: all
	+@$(MAKE) --no-print-directory -s CC=clang OBJ=obj/clang BIN=obj/clang/bin all
	+@$(MAKE) --no-print-directory -s $(SANITIZE) all unit
	tests/run unit=obj/asan/tests cli=obj/asan/bin live=$(BIN)

# Real source builds; the first time takes about an hour and a half on two cores.
check-full: deps-full
	+$(MAKE) --no-print-directory all
	tests/run full=$(BIN)

# Conditions on a host with two NUMA nodes and idle states, in a virtual machine; half a minute.
check-vm:
	-+@$(MAKE) --no-print-directory deps-vm
	+$(MAKE) --no-print-directory all
	tests/vm/run.sh $(BIN) || [ $$? = 77 ]

# What a file from elsewhere can do to kiln check: libFuzzer with sanitizers. The corpus that was
# found is in tests/fuzz/corpus; FUZZ_CHILD reads debug information for one input in so many.
FUZZ_RUNS  ?= 1000000
FUZZ_CHILD ?= 1000
FUZZERS    := fuzz_check fuzz_units
FUZZ       := OBJ=obj/fuzz CC=clang OPT="-O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined"
fuzz: deps-fuzz
	+@$(MAKE) --no-print-directory -s $(FUZZ) fuzzers
	tests/fuzz/seeds.sh obj/fuzz/seeds
	mkdir -p obj/fuzz/corpus
	cd obj/fuzz && ./fuzz_units -runs=$(FUZZ_RUNS) -max_len=2000 -timeout=2 -print_final_stats=1
	cd obj/fuzz && KILN_FUZZ_CHILD=$(FUZZ_CHILD) ./fuzz_check corpus ../../tests/fuzz/corpus seeds \
	    -runs=$(FUZZ_RUNS) -max_len=16384 -timeout=2 -malloc_limit_mb=256 -rss_limit_mb=1024 \
	    -detect_leaks=1 -print_final_stats=1
fuzzers: $(FUZZERS:%=$(OBJ)/%)
$(OBJ)/fuzz_%: $(OBJ)/tests/fuzz/fuzz_%.o $(ELFCHECK)
	$(CC) $(CFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS_kiln-check) $(LIBS_COMMON)

# How fast, against the tools that people know, in alternating rounds.
bench: deps-bench
	+$(MAKE) --no-print-directory all $(OBJ)/pairs
	tests/bench/check.sh $(BIN) $(OBJ)/pairs
$(OBJ)/pairs: tests/bench/pairs.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $<

demo: deps-source
	+$(MAKE) --no-print-directory all
	$(SUDO) docs/demo.sh $(BIN)

lint: deps-lint
	clang-format --dry-run -Werror $(wildcard */*.[ch] tests/*/*.[ch])
	cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 \
	    "-Djson_array_foreach(a,i,v)=for(i=0;(v=json_array_get(a,i));i++)" \
	    "-Djson_object_foreach(o,k,v)=for(;(k=json_next(o,&v));)" -I. $(wildcard common elfcheck builder launcher remap bench)
	shellcheck -x docs/demo.sh tests/run .ci/run $(wildcard tests/vm/*.sh tests/fuzz/*.sh tests/bench/*.sh) tests/vm/init

# --- install ---

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/kiln $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 755 $(PROGRAMS:%=$(BIN)/%) $(HELPERS:%=$(BIN)/%) $(DESTDIR)$(PREFIX)/bin
	cp -r profiles toolchains $(DESTDIR)$(PREFIX)/share/kiln/
	install -m 644 docs/*.1 $(DESTDIR)$(PREFIX)/share/man/man1

clean:
	rm -rf obj bin

.PHONY: all clean unit check check-built check-full check-vm fuzz fuzzers bench demo lint install
.SECONDARY:
