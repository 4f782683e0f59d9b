/*
 * plugin_host_blame.h - finds out whose code runs on a thread, and records it in the journal when that code ends the
 * process.
 *
 * Each file that is loaded has a number, unique in the process. The journal's lines contain it, and so does everything
 * that identifies running code: the step of a thread, the labels of calls, the mapped images. When the process dies of
 * a signal, or code ends it by exit(), _exit() or quick_exit(), the number of the file whose code caused it is written
 * to each journal.
 */
#ifndef PLUGIN_HOST_BLAME_H
#define PLUGIN_HOST_BLAME_H

#include <stddef.h>
#include <stdint.h>

#define PLUGIN_HOST_NOBODY 0      /* the number of no file: it is unknown whose code ran */
#define PLUGIN_HOST_THE_PROGRAM 1 /* the number of the program's own code */

/* Sets the step that runs on this thread outside calls (such as the loading of a file), and the number of its file. A
 * null label means no step. */
void plugin_host_set_step(const char *label, uint64_t file);
/* Returns the label of the step on this thread; null if there is none. */
const char *plugin_host_step(void);
uint64_t plugin_host_step_file(void);

/* Returns a copy of the text, preceded by the number of a file, for records of calls; null if there is no memory. */
const char *plugin_host_label_create(const char *text, uint64_t file);
void plugin_host_label_free(const char *label);

/* Adds the image that contains an address to those that the report recognises. `label` is never freed. */
void plugin_host_add_image(const void *address, const char *label, uint64_t file);
/* Adds the image that is about to be opened with this path to those that the report recognises, until
 * plugin_host_add_image is called for it. Requires glibc 2.35 or later. The strings are never freed. */
void plugin_host_expect_image(const char *path, const char *label, uint64_t file);
/* Adds a library that the dynamic linker is about to open together with the module of a file. The path is absolute, has
 * no `.` or `..`, and is never freed. Code of a library that several files use is attributed to no file if it runs
 * outside calls and steps. Requires glibc 2.35 or later. */
void plugin_host_expect_library(const char *path, const char *label, uint64_t file);

/* Adds a journal: a file to which a line is written when a signal or an exit ends the process, {"fatal":NUMBER} or
 * {"exit":NUMBER}. An exit that is not caused by a module writes no line; a signal whose cause is unknown writes
 * PLUGIN_HOST_NOBODY. The file must be open with O_APPEND. Returns 1, or 0 if there is no memory. Only the process that
 * was the last to call this, or plugin_host_report_exits, writes lines: a child of fork writes none. */
int plugin_host_add_journal(int descriptor);
void plugin_host_remove_journal(int descriptor);
/* The start of the module of a file begins or ends. While no module is being started, exits are not written to
 * journals. */
void plugin_host_begin_start(uint64_t file);
void plugin_host_end_start(uint64_t file);

/* From now on, an exit by code of a module is reported on standard error, with the calls of the thread that ends the
 * process. _exit() and _Exit() count as the module's only if its code, or that of its own libraries, calls them
 * directly. The exit code stays that of the module. If code other than an action ends the process while its module is
 * being started, the exit code is 70. */
void plugin_host_report_exits(void);

/* Makes the report of a fatal signal also write to a descriptor where the code of modules was: a line
 * "address OFFSET PATH" for each function of a module on the stack, the innermost first, at most 16. OFFSET is the
 * offset of the instruction in the file PATH, in hexadecimal digits. Requires glibc 2.35 or later. */
void plugin_host_report_addresses(int descriptor);

/* Returns the file that the code of a module at an address comes from, and the offset in it; null if the file is not
 * known. The path belongs to the image, which must stay open while the path is used. Requires glibc 2.35 or later. */
const char *plugin_host_code_address(const void *address, uint64_t *offset);

/* Returns whether the bytes can be read without a fault. If this cannot be determined, they count as readable. */
int plugin_host_is_readable(const void *address, size_t count);

#endif
