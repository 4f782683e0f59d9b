public import PluginABI

/// One of many modules. The build makes one; `NumberedModules` copies it and changes the digits of the name and the
/// version. Both are longer than the fifteen bytes that Swift keeps in a register, so that the file contains each once,
/// as written here.
struct Numbered: Module {
    static let manifest = Manifest("NumberedModule_00000000", version: "100000000.0.0-numbered") {
        Target("NumberedModule_00000000") {
            Action("number", .required("n", Int.self)) { n in n &+ 1 }
            Action("first", .required("key", String.self), .optional("page", Int.self)) { key, _ in key }
            Action("second", .required("key", String.self)) { key in key }
            Action("third", .required("key", String.self)) { key in key }
            Action("fourth", .required("key", String.self)) { key in key }
            Action("fifth", .required("key", String.self)) { key in key }
            Action("sixth", .required("key", String.self)) { key in key }
            Action("seventh", .required("key", String.self)) { key in key }
            Action("eighth", .required("key", String.self)) { key in key }
            Action("version") { "100000000.0.0-numbered" }
        }
        Subscribe {
            Action("bench.happened", .required("n", Int.self)) { n in }
        }
    }
}

@_cdecl("plugin_module_entry")
public func entry() -> UnsafePointer<plugin_module> { Numbered.export() }
