/*
 * plugin_host_editor.h - editing of lines at the terminal, by libedit.
 *
 * libedit is opened at run time, and only when it is needed. There is one editor per process, because there is one
 * terminal. Other threads can print between the calls of plugin_host_editor_begin_output and
 * plugin_host_editor_end_output, which move the line that is being edited out of the way.
 */
#ifndef PLUGIN_HOST_EDITOR_H
#define PLUGIN_HOST_EDITOR_H

/* Completes a line. `line` is what was typed in front of the cursor; `columns` is the width of the terminal. Returns
 * text from malloc(3): its first line is inserted, and its other lines are printed above the edited line. For null or
 * an empty text, only the bell sounds. */
typedef char *(*plugin_host_complete)(const char *line, int columns, void *context);

/* Prepares the terminal of descriptors 0 and 1. Returns 1; 0 if libedit cannot be opened. To be called once. */
int plugin_host_editor_open(int history_size);
/* Adds a line to the history. */
void plugin_host_editor_remember(const char *line);
/* Reads a line. Returns it without its line feed, from malloc(3); null at the end of the input. */
char *plugin_host_editor_read(const char *prompt, plugin_host_complete complete, void *context);

/* Erases the line that is being edited, and keeps it from being drawn until plugin_host_editor_end_output. Does nothing
 * else if no line is being edited. The output in between must end with a line feed. */
void plugin_host_editor_begin_output(void);
void plugin_host_editor_end_output(void);

/* Restores the terminal before the process is suspended. Like plugin_host_editor_close, it waits for at most half a
 * second; the line stays where it is if the terminal's output is stopped (Ctrl-S). */
void plugin_host_editor_suspend(void);
/* Prepares the terminal again after plugin_host_editor_suspend, and draws the line. */
void plugin_host_editor_resume(void);
/* Erases the line, and restores the terminal for good. A thread that reads a line gets null at the next key. */
void plugin_host_editor_close(void);
/* Restores the terminal when the process ends. Does nothing in a child process. Async-signal-safe. */
void plugin_host_editor_restore(void);

#endif
