import PluginABI

/// A module whose actions use every kind of type. `Tests/PluginFacadesTests/DeskFacade.swift` is generated from it.
struct Desk: Module {
    static let manifest = Manifest("Desk", version: "1.0.0") {
        Target("Desk") {
            Action("import", .required("drafts", [Draft].self), .optional("order", Order.self, default: .title)) {
                drafts, order in
                order == .title ? drafts.sorted { $0.title < $1.title } : drafts
            }
            Action("find", .required("title", String.self)) { title in
                title.isEmpty ? nil : Draft(title: title, author: Author(name: "A", level: .high), tags: ["t"])
            }
            Action("thumbnail", .required("title", String.self)) { title in title.isEmpty ? nil : Bytes(title.utf8) }
            Action("count", .required("drafts", [String: [Draft]].self)) { drafts in drafts.mapValues(\.count) }
            Action("tree") { Tree(name: "root", children: [Tree(name: "leaf", children: [])]) }
            Action("open", .context(), .required("title", String.self)) { context, title in
                try context.object(Editor(title))
            }
            Action("all", .context()) { context in [try context.object(Editor("a")), try context.object(Editor("b"))] }
            Action("later", .reply([Author].self)) { reply in reply.resolve([Author(name: "L", level: .low)]) }
            Action("order", .required("order", Order.self)) { order in order }.remote()
        }
        Page("Editor", Editor.self) {
            Action("title", .instance()) { editor in editor.title }
            Action.backData { editor in Draft(title: editor.title, author: nil, tags: []) }
        }
        Route("app://desk/:order", to: "Desk/order").named("ordered")
    }
}

@_cdecl("plugin_module_entry")
public func entry() -> UnsafePointer<plugin_module> { Desk.export() }

struct Draft: ValueCodable, Equatable {
    var title: String
    var author: Author?
    var tags: [String]
    var extra: [String: Value]?
}

struct Author: ValueCodable, Equatable {
    enum Level: Int, ValueCodable, CaseIterable {
        case low = -1
        case middle
        case high = 10
    }

    var name: String
    var level: Level
}

enum Order: String, ValueCodable, CaseIterable {
    case title
    case date = "by date"
}

struct Tree: ValueCodable {
    var name: String
    var children: [Tree]
}

struct Editor: Sendable {
    let title: String

    init(_ title: String) { self.title = title }
}
