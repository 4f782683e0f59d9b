import Foundation
import Hummingbird
import PluginABI
import PluginHost

extension PluginGateway {
    /// `GET /page/state`: the modules, their generations, and the problems.
    var pageState: Value {
        [
            "ready": .bool(isReady), "allowsChanges": .bool(configuration.page == .changes),
            "event": .string("\(events.run)-\(events.last)"), "inFlight": .int(admission.inFlight),
            "modules": .list(host.modules.map(\.record)), "generations": .list(host.generations.map(\.record)),
            "changes": .list(pageChanges.log.last.map(\.record)),
            "problems": .list(host.problems.map(\.record)), "retired": .int(host.retiredTotal.count),
        ]
    }

    /// `GET /page/statistics`: for each action that was called, a list of module, action, calls, errors, and the
    /// median, the 99th percentile and the maximum of the duration in milliseconds; then, of the calls by HTTP, their
    /// number and the sum of their durations.
    var pageStatistics: Value {
        let times = callTimes.all
        let actions = host.statistics.map { action -> Value in
            [
                .string(action.module), .string(action.action), .int(action.calls), .int(action.errors),
                .milliseconds(action.median), .milliseconds(action.percentile99), .milliseconds(action.maximum),
                .int(times[action.action]?.calls ?? 0), .double(times[action.action]?.milliseconds ?? 0),
            ]
        }
        return ["inFlight": .int(admission.inFlight), "actions": .list(actions)]
    }

    /// `GET /page/module?name=…`: the actions of a module with what forms need, and its kept versions.
    func pageModule(_ request: ReceivedRequest, _ modules: [Catalog.Module]) throws(Problem) -> Value {
        let query = URLComponents(string: request.path ?? "")?.queryItems
        guard let name = query?.first(where: { $0.name == "name" })?.value else {
            throw Problem(.missingParameter, "The query lacks the parameter “name”.")
        }
        let module = modules.first { $0.name == name }
        let kept = host.keptVersions(of: name)
        guard module != nil || !kept.isEmpty || host.modules.contains(where: { $0.name == name }) else {
            throw Problem(.unknownModule, "There is no module “\(name.prefix(100))”.")
        }
        return [
            "name": .string(name), "targets": .list(module?.targets.map(\.record) ?? []),
            "values": .list(module?.values.map(\.typeRecord) ?? []),
            "kept": .list(
                kept.map { kept in
                    [
                        "version": .string(kept.version), "kept": .time(kept.kept), "bytes": .int(kept.bytes),
                        "serving": .bool(kept.isServing),
                    ]
                }),
        ]
    }
}

/// The routes as the page gets them. Finding overlaps can take some tenths of a second, so they are found once for all
/// requests of a second, on a thread of their own.
actor PageRoutes {
    private var known: (text: ByteBuffer, made: ContinuousClock.Instant)?
    private var making: Task<ByteBuffer, Never>?

    func text(of host: PluginHost) async -> ByteBuffer {
        if let known, .now - known.made < .seconds(1) { return known.text }
        if let making { return await making.value }
        let task = Task {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    let text = Value.map(["routes": .list(host.routes.map(\.record))]).json
                    continuation.resume(returning: ByteBuffer(string: text))
                }
            }
        }
        making = task
        let text = await task.value
        (known, making) = ((text, .now), nil)
        return text
    }
}
