/*
 * plugin_host_blame.h - whose code runs on a thread, and what the journal gets to know when that code ends the process.
 *
 * Each file that is loaded has a number, unique in the process. The journal's lines carry it, and so does everything by
 * which running code is recognised: the step of a thread, the labels of calls, the mapped images. When the process dies of
 * a signal, or code ends it by exit() or _exit(), the number of the module whose code did so is written to each journal.
 */
#ifndef PLUGIN_HOST_BLAME_H
#define PLUGIN_HOST_BLAME_H

#include <stddef.h>
#include <stdint.h>

#define PLUGIN_HOST_NOBODY 0      /* the number of no file: it is not known whose code ran */
#define PLUGIN_HOST_THE_PROGRAM 1 /* the number of the program's own code */

/* Says what runs on this thread while no call does (the loading of a file), and for which file; null for nothing. */
void plugin_host_set_step(const char *label, uint64_t file);
/* What was said on this thread; null for nothing. */
const char *plugin_host_step(void);
uint64_t plugin_host_step_file(void);

/* A copy of the text with the number of a file in front of it, for records of calls; null without memory. */
const char *plugin_host_label_create(const char *text, uint64_t file);
void plugin_host_label_free(const char *label);

/* Tells the report where a module's code lies. `label` is never freed. */
void plugin_host_add_image(const void *address, const char *label, uint64_t file);
/* The same of a file that is going to be opened by this path, for the time until that is called; with glibc 2.35 or
 * later. The strings are never freed. */
void plugin_host_expect_image(const char *path, const char *label, uint64_t file);

/* A file that gets a line when a signal or an exit ends the process, {"fatal":NUMBER} or {"exit":NUMBER}. An exit that
 * is not a module's leaves no line; the number of a signal's line is PLUGIN_HOST_NOBODY where nobody is known. Open with
 * O_APPEND. False without memory. Lines of a process that was forked from this one are not written. */
int plugin_host_add_journal(int descriptor);
void plugin_host_remove_journal(int descriptor);
/* Adds to the number of modules that are being started. While it is 0, exits are not looked at. */
void plugin_host_count_starts(int change);

/* From now on an exit by code of a module that is being started is said on standard error, and the exit code is 70. */
void plugin_host_report_exits(void);

/* Whether the bytes can be read without a fault. Where the kernel does not say, they are taken to be readable. */
int plugin_host_is_readable(const void *address, size_t count);

#endif
