public import PluginABI

/// A module that calls another one through the host.
struct Caller: Module {
    static let manifest = Manifest("Caller", version: "1.0.0") {
        Target("Caller") {
            // Makes so many calls that the cost of the call that leads here is negligible.
            Action("callBench", .context(), .required("count", Int.self)) { context, count in
                let ready: Parameters = [
                    "text": "A text that is long enough to have no place in the sixteen bytes of a Swift string.",
                    "n": 7, "word": "word",
                ]
                var sum = 0
                for _ in 0..<count { sum &+= try context.perform("Bench", "three", ready).int ?? 0 }
                return sum
            }
            Action("askBench", .context(), .required("n", Int.self)) { context, n in
                try context.perform("Bench", "one", ["n": .int(n)]).int ?? 0
            }
        }
    }
}

@_cdecl("plugin_module_entry")
public func entry() -> UnsafePointer<plugin_module> { Caller.export() }
