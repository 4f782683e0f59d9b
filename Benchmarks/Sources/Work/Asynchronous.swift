import Figures
import PluginABI
import PluginHost

extension Comparison {
    /// An asynchronous action that completes at once, awaited.
    public static func asynchronous() throws -> [Comparison] {
        let host = try PluginHost.bench()
        let parameters: Parameters = ["n": 7]
        return [
            Comparison(
                "async action that completes at once", goal: Goal(timesFloor: 1.2), floors: [continuation],
                async: { count in
                    var sum = 0
                    for _ in 0..<count { sum &+= try await host.call("Bench", "later", parameters).int ?? 0 }
                    keep(sum)
                }),
            Comparison(
                "synchronous action, awaited", floors: [continuation],
                async: { count in
                    var sum = 0
                    for _ in 0..<count { sum &+= try await host.call("Bench", "one", parameters).int ?? 0 }
                    keep(sum)
                }),
        ]
    }

    /// A continuation that a task behind a C pointer answers, begun with `Task.immediate`.
    private static var continuation: Work {
        let later = Opened.later
        return Work(
            "continuation behind a C pointer",
            async: { count in
                var sum = 0
                for n in 0..<count {
                    sum &+= await withUnsafeContinuation { (continuation: UnsafeContinuation<Int, Never>) in
                        later(n, unsafeBitCast(continuation, to: UnsafeMutableRawPointer.self)) { data, result in
                            unsafeBitCast(data, to: UnsafeContinuation<Int, Never>.self).resume(returning: result)
                        }
                    }
                }
                keep(sum)
            })
    }
}
