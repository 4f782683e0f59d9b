#pragma once
#include <stddef.h>
#include <stdint.h>

/* From libFuzzer (compiler-rt): runs it with a program's arguments; see https://llvm.org/docs/LibFuzzer.html. */
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*test)(const uint8_t *data, size_t size));
