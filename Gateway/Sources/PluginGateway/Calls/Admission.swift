import PluginABI
import Synchronization

/// The number of calls in flight, in all and for each module, with their limits.
final class Admission: Sendable {
    private struct State {
        var total = 0
        var modules: [String: Int] = [:]
    }

    private let total: Int
    private let perModule: Int
    private let state = Mutex(State())

    init(total: Int, perModule: Int) { (self.total, self.perModule) = (max(1, total), max(1, perModule)) }

    /// The slot of a call, which is free again when nothing refers to this object.
    final class Slot: Sendable {
        private let admission: Admission
        private let module: String?

        fileprivate init(_ admission: Admission, _ module: String?) {
            (self.admission, self.module) = (admission, module)
        }

        deinit { admission.leave(module) }
    }

    /// Counts a call for as long as its slot is kept.
    ///
    /// - Parameter module: The module that the call leads to; `nil` if it leads to none.
    func enter(_ module: String?) throws(Problem) -> Slot {
        try state.withLock { (state) throws(Problem) in
            guard state.total < total else {
                throw Problem(.overloaded, "\(total) calls are in flight, which is the limit. Try again later.")
            }
            if let module {
                let count = state.modules[module] ?? 0
                guard count < perModule else {
                    throw Problem(
                        .moduleBusy,
                        "\(perModule) calls of this module are in flight, which is the limit. Try again later.",
                        retryAfter: 1)
                }
                state.modules[module] = count + 1
            }
            state.total += 1
        }
        return Slot(self, module)
    }

    private func leave(_ module: String?) {
        state.withLock { state in
            state.total -= 1
            guard let module, let count = state.modules[module] else { return }
            state.modules[module] = count > 1 ? count - 1 : nil
        }
    }

    /// The calls in flight, in all and by module.
    var counts: (total: Int, modules: [String: Int]) { state.withLock { ($0.total, $0.modules) } }
}
