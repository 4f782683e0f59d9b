public import PluginABI

/// The module that the benchmarks call. Its actions do next to nothing, so that only the path to them and back is
/// measured.
struct Bench: Module {
    static let manifest = Manifest("Bench", version: "1.0.0") {
        Target("Bench") {
            Action("one", .required("n", Int.self)) { n in n &+ 1 }
            Action(
                "three", .required("text", String.self), .required("n", Int.self), .required("word", String.self)
            ) { text, n, word in text.utf8.count &+ n &+ word.utf8.count }
            // Calls the module Caller, which calls this module again, all on the caller's thread.
            Action("askCaller", .context(), .required("n", Int.self)) { context, n in
                try context.perform("Caller", "askBench", ["n": .int(n)]).int ?? 0
            }
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
