/* The plugin that Qt opens, with metadata and one object. */
#include <QtCore/QObject>
#include <QtCore/QtPlugin>

class Plugin : public QObject {
    Q_OBJECT
    Q_PLUGIN_METADATA(IID "bench.plugin" FILE "plugin.json")
};

#include "plugin.moc"
