#ifndef KILN_VERSION
#define KILN_VERSION "0.1.0"
#endif
