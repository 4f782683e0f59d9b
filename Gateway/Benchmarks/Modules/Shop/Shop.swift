public import PluginABI

/// The module that the benchmarks call. Its action does next to nothing, so that only the path to it and back is
/// measured.
struct Shop: Module {
    static let manifest = Manifest("Shop", version: "1.0.0") {
        Target("Shop") {
            Action("item", .required("id", Int.self), .optional("size", Int.self, default: 1)) { id, size in
                Value.map(["id": .int(id), "name": "apple", "size": .int(size)])
            }
            .remote()
        }
        Route("https://*/shop/:id", to: "Shop/item").method(.get)
    }
}

@_cdecl("plugin_module_entry")
public func entry() -> UnsafePointer<plugin_module> { Shop.export() }
