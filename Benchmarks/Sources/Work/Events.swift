import Figures
import PluginABI
import PluginHost

extension Comparison {
    /// Posting an event; the figure is the time for one subscriber.
    ///
    /// - Parameter sizes: How many modules subscribe to it.
    public static func events(_ sizes: [Int]) throws -> [Comparison] {
        try sizes.flatMap { size in
            let temporary = TemporaryFolder()
            let folder = temporary.folder("plugins")
            try NumberedModules.writeAll(size, to: folder)
            let host = try PluginHost.bench(folder: folder, in: temporary)
            let parameters: Parameters = ["n": 7]
            let closures = (0..<size).map { number in { (parameters: [String: Value]) in keep(number) } }
            let floor = Work("loop over closures") { count in
                let parameters: [String: Value] = ["n": 7]
                for _ in 0..<count { for closure in closures { closure(parameters) } }
            }
            let modules = Subscribers(
                of: "bench.happened", in: (0..<size).map { "\(folder)/lib\(NumberedModules.name($0)).so" })
            let pointers = Work("their functions through pointers") { count in
                for number in 0..<count { modules.tell(Int64(number)) }
            }
            let program = try PluginHost.bench([])
            let subscriptions = (0..<size).map { _ in program.on("bench.happened") { (_: [String: Value]) in } }
            return [
                Comparison(
                    "event, per module that subscribes", size: size, peer: "event", share: size,
                    goal: Goal(atMost: 80), floors: [pointers, floor]
                ) { count in
                    for _ in 0..<count { keep(try host.post("bench.happened", parameters).delivered) }
                    withExtendedLifetime(temporary) {}
                },
                Comparison(
                    "event, per closure of the program", size: size, peer: "event", share: size,
                    goal: size == 1 ? Goal(below: "GLib emit_by_name") : Goal(atMost: 80), floors: [floor]
                ) { count in
                    for _ in 0..<count { keep(try program.post("bench.happened", parameters).delivered) }
                    withExtendedLifetime(subscriptions) {}
                },
            ]
        }
    }
}
