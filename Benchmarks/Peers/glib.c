/* GLib: signals by name; modules.   glib; glib MODULE FOLDER */
#include <glib-object.h>
#include <gmodule.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#include "measure.h"

static const char text[] = "A text that is long enough to have no place in the sixteen bytes of a Swift string.";
static volatile long kept;

typedef GObject Emitter;
typedef GObjectClass EmitterClass;
G_DEFINE_TYPE(Emitter, emitter, G_TYPE_OBJECT)

static gint three(GObject *object, const char *text, gint n, const char *word, gpointer data) {
    return (gint)strlen(text) + n + (gint)strlen(word);
}
static gint one(GObject *object, gint n, gpointer data) { return n + 1; }
static void happened(GObject *object, gint n, gpointer data) { kept = n; }

static void emitter_init(Emitter *emitter) {}
static void emitter_class_init(EmitterClass *class) {
    GType type = G_TYPE_FROM_CLASS(class);
    g_signal_new("three", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_INT, 3, G_TYPE_STRING, G_TYPE_INT,
                 G_TYPE_STRING);
    g_signal_new("one", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_INT, 1, G_TYPE_INT);
    g_signal_new("happened", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_INT);
}

static void emit_three(long count, void *object) {
    long sum = 0;
    for (long i = 0; i < count; i++) {
        gint result = 0;
        g_signal_emit_by_name(object, "three", text, (gint)i, "word", &result);
        sum += result;
    }
    kept = sum;
}

static void emit_one(long count, void *object) {
    long sum = 0;
    for (long i = 0; i < count; i++) {
        gint result = 0;
        g_signal_emit_by_name(object, "one", (gint)i, &result);
        sum += result;
    }
    kept = sum;
}

static void emit_happened(long count, void *object) {
    for (long i = 0; i < count; i++) g_signal_emit_by_name(object, "happened", (gint)i);
}

/* Opens the copies of one module in a folder, and finds a symbol in each: the `start` of the host without staging. */
static void start(const char *module, const char *folder, int size) {
    char path[4096];
    gchar *bytes;
    gsize length;
    if (!g_file_get_contents(module, &bytes, &length, NULL)) exit(1);
    for (int i = 0; i < size; i++) {
        snprintf(path, sizeof path, "%s/glib-%d-%d.so", folder, size, i);
        if (!g_file_set_contents(path, bytes, length, NULL)) exit(1);
    }
    double begin = now();
    for (int i = 0; i < size; i++) {
        snprintf(path, sizeof path, "%s/glib-%d-%d.so", folder, size, i);
        GModule *opened = g_module_open(path, G_MODULE_BIND_LOCAL);
        gpointer symbol;
        if (!opened || !g_module_symbol(opened, "peer_entry", &symbol)) {
            fprintf(stderr, "%s: %s\n", path, g_module_error());
            exit(1);
        }
        kept += ((int (*)(void))symbol)();
    }
    tell("start", "g_module_open", size, (now() - begin) / 1e6);
    g_free(bytes);
}

int main(int argc, char **argv) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* Nothing goes on when the script is gone. */
    if (argc == 3) {
        start(argv[1], argv[2], 10);
        start(argv[1], argv[2], 100);
        start(argv[1], argv[2], 1000);
        return 0;
    }
    GObject *object = g_object_new(emitter_get_type(), NULL);
    g_signal_connect(object, "three", G_CALLBACK(three), NULL);
    g_signal_connect(object, "one", G_CALLBACK(one), NULL);
    offer("named3", "GLib emit_by_name", 0, emit_three, object);
    offer("named1", "GLib emit_by_name", 0, emit_one, object);
    const int sizes[] = {1, 100, 1000};
    for (int i = 0; i < 3; i++) {
        GObject *many = g_object_new(emitter_get_type(), NULL);
        for (int k = 0; k < sizes[i]; k++) g_signal_connect(many, "happened", G_CALLBACK(happened), NULL);
        offer("event", "GLib emit_by_name", sizes[i], emit_happened, many);
    }
    return serve();
}
