import Figures
import PluginABI
import PluginHost
import Work

/// The registration of many routes at once, and of one more.
struct Registering {
    let effort: Effort

    init(_ effort: Effort) { self.effort = effort }

    func rows() throws -> [Row] {
        try (effort.isCheck ? [10] : [100, 1_000, 10_000]).flatMap { size in try effort.referenced { try rows(size) } }
    }

    private func rows(_ size: Int) throws -> [Row] {
        let routes = (0..<size).map { (pattern: "\(RouteShape.nested.path($0))/:id", action: "URLs/open") }
        let manifest = Comparison.routes(size, .nested, target: "URLs")
        var (many, one, module) = ([Double](), [Double](), [Double]())
        for _ in 0..<effort.repetitions + 1 {
            let host = try PluginHost.bench([])
            many.append(try milliseconds { try host.addRoutes(routes) })
            for number in 0..<5 {
                one.append(
                    1000 * (try milliseconds { try host.addRoute("app://shop/more\(number)/:id", to: "URLs/open") }))
            }
            host.shutdown()
            let other = try PluginHost.bench([])
            module.append(try milliseconds { try other.register(manifest) })
            other.shutdown()
        }
        var rows = [
            Row("register routes at once", size: size, unit: "ms", of: many.dropFirst()),
            Row("one route more", size: size, unit: "µs", of: one.dropFirst(5)),
            Row("register a module with routes, JSON and all", size: size, unit: "ms", of: module.dropFirst()),
        ]
        (rows[0].first, rows[1].first, rows[2].first) = (many[0], one[0], module[0])
        if size == 10_000 { rows[0].goal = Goal(atMost: 20) }
        rows[1].goal = Goal(atMost: 100)
        if size == 10_000 { rows[2].goal = Goal(atMost: 50) }
        return rows
    }

    private func milliseconds(_ body: () throws -> Void) rethrows -> Double {
        let start = now()
        try body()
        return (now() - start) / 1e6
    }
}
