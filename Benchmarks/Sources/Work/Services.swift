import Figures
import PluginABI
import PluginHost

extension Comparison {
    /// Getting a service by its name, and calling it.
    ///
    /// - Parameter sizes: How many services there are.
    public static func services(_ sizes: [Int]) throws -> [Comparison] {
        try sizes.flatMap { size in
            let host = try PluginHost.bench()
            try host.register(
                Manifest("Fillers", version: "1.0.0") {
                    Target("Fillers") { Action("nothing") { 0 } }
                    for number in 1..<size { Service("Filler\(number)", version: "1.0.0", target: "Fillers") }
                })
            let service = try host.service("BenchService")
            let ready: Parameters = ["n": 7]
            return [
                Comparison(
                    "service by name", size: size, goal: Goal(atMost: 60, growth: 1.2), floors: [dictionary(size)]
                ) { count in
                    for _ in 0..<count { keep(try host.service("BenchService").isReady) }
                },
                Comparison("call of a service, one int ready made", size: size) { count in
                    var sum = 0
                    for _ in 0..<count { sum &+= try service.perform("one", ready).int ?? 0 }
                    keep(sum)
                },
            ]
        }
    }

    /// A dictionary from names to closures that return the service.
    private static func dictionary(_ size: Int) -> Work {
        var makers: [String: () -> Int] = ["BenchService": { 1 }]
        for number in 1..<size { makers["Filler\(number)"] = { number } }
        let known = makers
        return Work("dictionary of closures") { count in
            var sum = 0
            for _ in 0..<count { sum &+= known["BenchService"]!() }
            keep(sum)
        }
    }
}

extension ServiceHandle {
    /// Returns 1. It is not inlined, so the handle is really made.
    @inline(never) package var isReady: Int { 1 }
}
