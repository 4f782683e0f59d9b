/* Qt 5: slots by name, slots found before; plugins.   qt; qt PLUGIN FOLDER */
#include <QtCore/QFile>
#include <QtCore/QJsonObject>
#include <QtCore/QMetaMethod>
#include <QtCore/QObject>
#include <QtCore/QPluginLoader>

#include <signal.h>
#include <sys/prctl.h>

#include "measure.h"

static volatile long kept;

class Receiver : public QObject {
    Q_OBJECT
public:
    Q_INVOKABLE int three(const QString &text, int n, const QString &word) { return text.size() + n + word.size(); }
    Q_INVOKABLE int one(int n) { return n + 1; }
};

static void invokeThree(long count, void *data) {
    const QString text("A text that is long enough to have no place in the sixteen bytes of a Swift string.");
    const QString word("word");
    long sum = 0;
    for (long i = 0; i < count; i++) {
        int result = 0, n = (int)i;
        QMetaObject::invokeMethod((QObject *)data, "three", Qt::DirectConnection, Q_RETURN_ARG(int, result),
                                  Q_ARG(QString, text), Q_ARG(int, n), Q_ARG(QString, word));
        sum += result;
    }
    kept = sum;
}

static void invokeOne(long count, void *data) {
    long sum = 0;
    for (long i = 0; i < count; i++) {
        int result = 0, n = (int)i;
        QMetaObject::invokeMethod((QObject *)data, "one", Qt::DirectConnection, Q_RETURN_ARG(int, result),
                                  Q_ARG(int, n));
        sum += result;
    }
    kept = sum;
}

static void invokeBound(long count, void *data) {
    QObject *object = (QObject *)data;
    QMetaMethod method = object->metaObject()->method(object->metaObject()->indexOfMethod("one(int)"));
    long sum = 0;
    for (long i = 0; i < count; i++) {
        int result = 0, n = (int)i;
        method.invoke(object, Qt::DirectConnection, Q_RETURN_ARG(int, result), Q_ARG(int, n));
        sum += result;
    }
    kept = sum;
}

/* Reads the metadata of the copies of one plugin in a folder, then loads each and makes its object. */
static void start(const char *plugin, const char *folder, int size) {
    QStringList files;
    for (int i = 0; i < size; i++) {
        files << QString("%1/qt-%2-%3.so").arg(folder).arg(size).arg(i);
        if (!QFile::copy(plugin, files.last())) exit(1);
    }
    double begin = now();
    for (const QString &file : files) {
        QPluginLoader loader(file);
        kept += loader.metaData().size();
    }
    tell("start", "Qt metaData alone", size, (now() - begin) / 1e6);
    begin = now();
    for (const QString &file : files) {
        QPluginLoader loader(file);
        kept += loader.metaData().size();
        if (!loader.load() || !loader.instance()) {
            fprintf(stderr, "%s\n", qPrintable(loader.errorString()));
            exit(1);
        }
    }
    tell("start", "Qt load", size, (now() - begin) / 1e6);
}

int main(int argc, char **argv) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* Nothing goes on when the script is gone. */
    if (argc == 3) {
        start(argv[1], argv[2], 10);
        start(argv[1], argv[2], 100);
        start(argv[1], argv[2], 1000);
        return 0;
    }
    Receiver receiver;
    offer("named3", "Qt invokeMethod", 0, invokeThree, &receiver);
    offer("named1", "Qt invokeMethod", 0, invokeOne, &receiver);
    offer("bound", "Qt QMetaMethod", 0, invokeBound, &receiver);
    return serve();
}

#include "qt.moc"
