public import PluginABI

/// What the benchmarks call. The actions do next to nothing: what is measured is the way to them and back.
struct Bench: Module {
    static let manifest = Manifest("Bench", version: "1.0.0") {
        Target("Bench") {
            Action("one", .required("n", Int.self)) { n in n &+ 1 }
            Action(
                "three", .required("text", String.self), .required("n", Int.self), .required("word", String.self)
            ) { text, n, word in text.utf8.count &+ n &+ word.utf8.count }
            Action("later", .required("n", Int.self)) { n async in n &+ 1 }
            Action("length", .required("bytes", UnsafeRawBufferPointer.self)) { bytes in bytes.count }
            Action("bytes", .required("count", Int.self)) { count in payload(count) }
            Action(
                "open", .required("id", String.self), .required("q", String.self), .required("r", String.self)
            ) { id, q, r in id.utf8.count &+ q.utf8.count &+ r.utf8.count }
        }
        Service("BenchService", version: "1.0.0", target: "Bench")
    }
}

@_cdecl("plugin_module_entry")
public func entry() -> UnsafePointer<plugin_module> { Bench.export() }
