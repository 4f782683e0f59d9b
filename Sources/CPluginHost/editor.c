/* Editing of lines at the terminal. See plugin_host_editor.h. */
#define _GNU_SOURCE
#include "plugin_host_editor.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

/* From histedit.h, which need not be installed. */
typedef struct editline EditLine;
typedef struct history History;
typedef struct {
    int number;
    const char *text;
} HistEvent;
typedef struct {
    const wchar_t *buffer, *cursor, *end;
} LineInfo;
enum { EL_PROMPT = 0, EL_EDITOR = 2, EL_BIND = 4, EL_ADDFN = 9, EL_HIST = 10, EL_GETCFN = 13, EL_PREP_TERM = 16, EL_REFRESH = 20 };
enum { H_SETSIZE = 1, H_ENTER = 10 };
enum { CC_REFRESH = 4, CC_ERROR = 6 };

static struct {
    EditLine *(*el_init)(const char *, FILE *, FILE *, FILE *);
    int (*el_set)(EditLine *, int, ...);
    const char *(*el_gets)(EditLine *, int *);
    const LineInfo *(*el_wline)(EditLine *);
    int (*el_insertstr)(EditLine *, const char *);
    void (*el_resize)(EditLine *);
    int (*el_source)(EditLine *, const char *);
    History *(*history_init)(void);
    int (*history)(History *, HistEvent *, int, ...);
} lib;

/* Guards everything below, and the terminal. The thread that reads a line holds it except while it waits for a key. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static EditLine *editor;
static History *lines;
static locale_t utf8;               /* libedit converts texts by the locale of the thread */
static struct termios before;       /* the terminal's settings before it was prepared */
static int is_editing;              /* atomic: whether a line is being edited */
static int is_suspended, is_closed; /* atomic */
static pid_t owner;                 /* the process whose terminal it is; its children leave it alone */
static int columns;
static const char *prompt_text;
static plugin_host_complete completion;
static void *completion_context;

static int is_set(const int *flag) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }
static void set(int *flag, int value) { __atomic_store_n(flag, value, __ATOMIC_RELEASE); }

/* Waits half a second for the lock, because the thread that holds it may be writing to a terminal whose output is
 * stopped (Ctrl-S). Returns whether this thread has the lock. */
static int lock_soon(void) {
    enum { patience = 500000000, second = 1000000000 };
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += patience;
    until.tv_sec += until.tv_nsec / second;
    until.tv_nsec %= second;
    return pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &until) == 0;
}

/* Whether a write to the terminal returns immediately. Async-signal-safe. */
static int takes_output(void) {
    struct pollfd output = {.fd = 1, .events = POLLOUT};
    return poll(&output, 1, 0) == 1 && output.revents & POLLOUT;
}

static char *prompt(EditLine *unused) {
    (void)unused;
    return (char *)prompt_text;
}

/* Whether this process may change the terminal: the system stops a background process that tries to. */
static int is_in_foreground(void) { return tcgetpgrp(0) == getpgrp(); }

static int terminal_columns(void) {
    struct winsize size;
    return ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static int width(const wchar_t *text, const wchar_t *end) {
    int sum = 0;
    for (; text < end; text++) {
        int columns = wcwidth(*text);
        sum += columns < 0 ? 2 : columns; /* a control character is shown as ^X */
    }
    return sum;
}

/* Erases the line from the terminal, and leaves the cursor where the line began. */
static void erase(void) {
    const LineInfo *line = lib.el_wline(editor);
    int row = ((int)strlen(prompt_text) + width(line->buffer, line->cursor)) / terminal_columns();
    char text[32];
    int count = row > 0 ? snprintf(text, sizeof text, "\r\033[%dA\033[J", row) : snprintf(text, sizeof text, "\r\033[J");
    if (write(1, text, (size_t)count) < 0) {}
}

static void draw(void) { lib.el_set(editor, EL_REFRESH); }

/* Prepares the terminal and draws the line, if this process is in the foreground. */
static void prepare_again(void) {
    if (!is_set(&is_suspended) || !is_in_foreground()) return;
    set(&is_suspended, 0);
    lib.el_set(editor, EL_PREP_TERM, 0);
    lib.el_set(editor, EL_PREP_TERM, 1);
    draw();
}

static int get_character(EditLine *unused, wchar_t *character) {
    (void)unused;
    mbstate_t state = {0};
    while (!is_set(&is_closed)) {
        struct pollfd keys = {.fd = 0, .events = POLLIN};
        pthread_mutex_unlock(&lock);
        int has_key = poll(&keys, 1, -1) > 0; /* not after a signal */
        int is_ours = is_in_foreground();
        if (has_key && !is_ours) usleep(200000); /* What is typed is for the shell. */
        pthread_mutex_lock(&lock);
        if (!has_key || is_set(&is_closed)) continue;
        if (!is_ours) {
            set(&is_suspended, 1);
            continue;
        }
        prepare_again();
        if (columns != terminal_columns()) {
            columns = terminal_columns();
            lib.el_resize(editor);
        }
        char byte;
        ssize_t count = read(0, &byte, 1);
        if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (count <= 0) return (int)count;
        switch (mbrtowc(character, &byte, 1, &state)) {
        case (size_t)-2: continue; /* a part of a character */
        case (size_t)-1: memset(&state, 0, sizeof state); continue;
        default: return 1;
        }
    }
    return 0;
}

static unsigned char complete(EditLine *unused, int key) {
    (void)unused, (void)key;
    const LineInfo *line = lib.el_wline(editor);
    size_t count = (size_t)(line->cursor - line->buffer), size = count * 4 + 1;
    wchar_t *wide = calloc(count + 1, sizeof *wide);
    char *text = calloc(size, 1), *answer = NULL;
    if (wide && text) {
        wmemcpy(wide, line->buffer, count);
        if (wcstombs(text, wide, size - 1) != (size_t)-1) answer = completion(text, columns, completion_context);
    }
    free(wide);
    free(text);
    if (!answer || !*answer) {
        free(answer);
        return CC_ERROR;
    }
    char *list = strchr(answer, '\n');
    if (list) *list++ = 0;
    if (list && *list) {
        erase();
        dprintf(1, "%s\n", list);
        draw();
    }
    if (*answer) lib.el_insertstr(editor, answer);
    free(answer);
    return CC_REFRESH;
}

static int load(void) {
    void *library = dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) library = dlopen("libedit.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) return 0;
    return (lib.el_init = dlsym(library, "el_init")) && (lib.el_set = dlsym(library, "el_set"))
        && (lib.el_gets = dlsym(library, "el_gets")) && (lib.el_wline = dlsym(library, "el_wline"))
        && (lib.el_insertstr = dlsym(library, "el_insertstr")) && (lib.el_resize = dlsym(library, "el_resize"))
        && (lib.el_source = dlsym(library, "el_source")) && (lib.history_init = dlsym(library, "history_init"))
        && (lib.history = dlsym(library, "history"));
}

/* Opens a stream of libedit's own on a descriptor. */
static FILE *stream(int descriptor, const char *mode) {
    int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    return copy < 0 ? NULL : fdopen(copy, mode);
}

int plugin_host_editor_open(int history_size) {
    if (!load() || tcgetattr(0, &before) != 0) return 0;
    utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    FILE *input = stream(0, "r"), *output = stream(1, "w"), *errors = stream(1, "w");
    if (!utf8 || !input || !output || !errors) return 0;
    prompt_text = "";
    locale_t previous = uselocale(utf8);
    editor = lib.el_init("pluginhost", input, output, errors);
    lines = lib.history_init();
    if (editor && lines) {
        HistEvent event;
        lib.history(lines, &event, H_SETSIZE, history_size);
        lib.el_set(editor, EL_PROMPT, prompt);
        lib.el_set(editor, EL_EDITOR, "emacs");
        lib.el_set(editor, EL_HIST, lib.history, lines);
        lib.el_set(editor, EL_GETCFN, get_character);
        lib.el_set(editor, EL_ADDFN, "complete", "Complete the word", complete);
        lib.el_set(editor, EL_BIND, "^I", "complete", NULL);
        lib.el_set(editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
        lib.el_source(editor, NULL); /* ~/.editrc, in which people choose their keys */
        columns = terminal_columns();
    }
    uselocale(previous);
    if (!editor || !lines) return 0;
    owner = getpid();
    atexit(plugin_host_editor_restore);
    return 1;
}

void plugin_host_editor_remember(const char *line) {
    HistEvent event;
    locale_t previous = uselocale(utf8);
    pthread_mutex_lock(&lock);
    lib.history(lines, &event, H_ENTER, line);
    pthread_mutex_unlock(&lock);
    uselocale(previous);
}

char *plugin_host_editor_read(const char *text, plugin_host_complete complete, void *context) {
    locale_t previous = uselocale(utf8);
    pthread_mutex_lock(&lock);
    char *result = NULL;
    if (!is_set(&is_closed)) {
        prompt_text = text;
        completion = complete;
        completion_context = context;
        int count = 0;
        set(&is_editing, 1);
        const char *line = lib.el_gets(editor, &count);
        set(&is_editing, 0);
        if (line && count > 0) result = strdup(line);
        if (result && result[strlen(result) - 1] == '\n') result[strlen(result) - 1] = 0;
    }
    pthread_mutex_unlock(&lock);
    uselocale(previous);
    return result;
}

static int is_shown(void) { return is_set(&is_editing) && !is_set(&is_suspended) && is_in_foreground(); }

/* Restores the terminal's settings. Erases the line as well, unless that would wait for a stopped terminal. */
static void leave_line(int is_locked) {
    if (!is_locked || !takes_output()) {
        tcsetattr(0, TCSANOW, &before); /* unlike libedit, does not wait for output */
        return;
    }
    locale_t previous = uselocale(utf8);
    erase();
    lib.el_set(editor, EL_PREP_TERM, 0);
    uselocale(previous);
}

void plugin_host_editor_begin_output(void) {
    pthread_mutex_lock(&lock);
    if (!is_shown()) return;
    locale_t previous = uselocale(utf8);
    erase();
    uselocale(previous);
}

void plugin_host_editor_end_output(void) {
    if (is_shown()) {
        locale_t previous = uselocale(utf8);
        draw();
        uselocale(previous);
    }
    pthread_mutex_unlock(&lock);
}

void plugin_host_editor_suspend(void) {
    int is_locked = lock_soon();
    if (is_shown()) {
        leave_line(is_locked);
        set(&is_suspended, 1);
    }
    if (is_locked) pthread_mutex_unlock(&lock);
}

void plugin_host_editor_resume(void) {
    if (!lock_soon()) return; /* The next key prepares the terminal. */
    if (is_set(&is_editing) && !is_set(&is_closed)) {
        locale_t previous = uselocale(utf8);
        prepare_again();
        uselocale(previous);
    }
    pthread_mutex_unlock(&lock);
}

void plugin_host_editor_close(void) {
    int is_locked = lock_soon();
    if (is_shown()) leave_line(is_locked);
    set(&is_closed, 1);
    set(&is_editing, 0);
    if (is_locked) pthread_mutex_unlock(&lock);
}

void plugin_host_editor_restore(void) {
    if (getpid() != owner || !is_set(&is_editing) || !is_in_foreground()) return;
    tcsetattr(0, TCSANOW, &before);
    if (takes_output() && write(1, "\r\n", 2) < 0) {}
}
