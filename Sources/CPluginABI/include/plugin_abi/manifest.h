/* manifest.h - a manifest in a JSON file of its own, embedded when the module is compiled
 *
 *     PLUGIN_MANIFEST_FILE("counters.json");
 *
 *     static const plugin_module module = {
 *         ...
 *         .manifest = PLUGIN_MANIFEST,
 *
 * The file becomes a read-only section of the library, and the description refers to the bytes in
 * that section. Tools read the manifest from the section without running the module. */
#ifndef PLUGIN_ABI_MANIFEST_H
#define PLUGIN_ABI_MANIFEST_H

#include "../plugin_abi.h"
#include "layout.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The seal of a library: the section with its manifest. It consists of this header, the texts whose
 * lengths the header states, in the same order, and at most 7 zero bytes. A library has at most one
 * seal. The command `pluginhost seal` adds one to a module that is built in another way. */
#define PLUGIN_SEAL_SECTION "pluginhost_manifest"
#define PLUGIN_SEAL_MAGIC 0x4C41455347554C50 /* "PLUGSEAL", read as a little-endian integer */

typedef struct plugin_seal {
    uint64_t magic; /* PLUGIN_SEAL_MAGIC */
    uint32_t size;  /* sizeof(plugin_seal) */
    uint16_t abi_major, abi_minor;
    uint64_t manifest_count;  /* of plugin_module.manifest */
    uint64_t toolchain_count; /* of plugin_module.toolchain; 0 if it is empty */
    uint64_t types_count; /* of plugin_types.manifest; 0 if the module has no such extension */
} plugin_seal;

PLUGIN_ABI_ASSERT(sizeof(plugin_seal) == 40, "plugin_seal");
PLUGIN_ABI_ASSERT(offsetof(plugin_seal, manifest_count) == 16, "plugin_seal.manifest_count");

/* Embeds a file. Used once in a module, at file scope and outside of namespaces, in the source file
 * that uses PLUGIN_MANIFEST. `file` is a string literal: a path relative to the folder in which the
 * compiler runs, or to one that is passed with -I (for gcc also with -Wa,-I). If the file is
 * missing, compilation fails.
 *
 * The compiler does not list the file among those that the source depends on: add it to the rule in
 * the makefile, `libCounters.so: counters.c counters.json`. With SwiftPM, add these lines, which
 * clang does list:
 *
 *     #if !__has_include("counters.json")
 *     #error "counters.json is missing"
 *     #endif
 *
 * With -flto the file is read when the module is linked: pass -I to gcc there, too; for clang, link
 * in the folder of the file, or write an absolute path. */
#define PLUGIN_MANIFEST_FILE(file)                                                        \
    PLUGIN_MANIFEST_EXTERN const char plugin_manifest_text[]                              \
        __attribute__((visibility("hidden")));                                            \
    PLUGIN_MANIFEST_EXTERN const char plugin_manifest_size[]                              \
        __attribute__((visibility("hidden")));                                            \
    __asm__(".pushsection " PLUGIN_SEAL_SECTION ", \"a\", %progbits\n" /* read-only */    \
            ".balign 8\n" PLUGIN_MANIFEST_SCOPE                                           \
            ".8byte " PLUGIN_MANIFEST_TOKEN(PLUGIN_SEAL_MAGIC) "\n"                       \
            ".4byte 40\n"                                                                 \
            ".2byte " PLUGIN_MANIFEST_TOKEN(PLUGIN_ABI_MAJOR) "\n"                        \
            ".2byte " PLUGIN_MANIFEST_TOKEN(PLUGIN_ABI_MINOR) "\n"                        \
            ".8byte plugin_manifest_size\n"                                               \
            ".8byte 0, 0\n"                                                               \
            ".type plugin_manifest_text, %object\n"                                       \
            "plugin_manifest_text:\n"                                                     \
            ".incbin \"" file "\"\n"                                                      \
            ".set plugin_manifest_size, . - plugin_manifest_text\n"                       \
            ".size plugin_manifest_text, plugin_manifest_size\n"                          \
            ".popsection")

/* The member `manifest` of the description. The size is that of the file: the assembler defines a
 * symbol whose address is this number. */
#ifdef __cplusplus
#define PLUGIN_MANIFEST {plugin_manifest_text, reinterpret_cast<uint64_t>(plugin_manifest_size)}
#define PLUGIN_MANIFEST_EXTERN extern "C"
#else
#define PLUGIN_MANIFEST {plugin_manifest_text, (uint64_t)(uintptr_t)plugin_manifest_size}
#define PLUGIN_MANIFEST_EXTERN extern
#endif

/* In a library, the symbols are visible in all of its object files, because an optimising linker
 * may distribute the code among these. A program that modules are linked into has the symbols once
 * for each module. */
#if defined(PLUGIN_LINKED_IN)
#define PLUGIN_MANIFEST_SCOPE
#else
#define PLUGIN_MANIFEST_SCOPE                                   \
    ".globl plugin_manifest_text\n.hidden plugin_manifest_text\n" \
    ".globl plugin_manifest_size\n.hidden plugin_manifest_size\n"
#endif

#define PLUGIN_MANIFEST_TOKEN(macro) PLUGIN_MANIFEST_TEXT(macro)
#define PLUGIN_MANIFEST_TEXT(tokens) #tokens

#ifdef __cplusplus
}
#endif

#endif
