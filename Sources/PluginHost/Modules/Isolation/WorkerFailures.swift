import CPluginHost
import PluginABI
import PluginFile
import Synchronization

// The errors of calls to which the worker does not reply.

extension WorkerProcess {
    /// Replies to a call of the host to which the process has not replied.
    func fail(_ token: plugin_token, _ ending: CallEnding) {
        guard let generation, let record = CallRecord(token: token), record.phase(of: token) != .over else { return }
        // `endCalls` replies to an asynchronous call that was running when the process ended.
        if ending == .ended, record.endpoint?.isAsync == true { return }
        let title = record.endpoint?.title ?? "A function of \(generation.name)"
        answer(token, error(ending, title, generation), generation)
    }

    func error(_ ending: CallEnding, _ title: String, _ generation: Generation) -> PluginError {
        switch ending {
        case .tooLarge: .tooLargeForWorker
        case .noRoom: .noRoomForWorker
        case .late: PluginError(.deadlineExceeded, "\(title) did not reply before its deadline.")
        case .busy:
            PluginError(
                .overloaded,
                lostSerialCalls.load(ordering: .relaxed) > 0
                    ? "\(title) cannot be called: a call of \(generation.name) that did not end before its deadline is "
                        + "still running."
                    : "\(title) cannot be called: \(generation.name) runs in a process of its own and is already "
                        + "running as many calls as it can.")
        case .ended, .gone, .returned: crash(title, generation)
        }
    }

    private func crash(_ title: String, _ generation: Generation) -> PluginError {
        .crash(of: title, generation, ending ?? "")
    }

    private func answer(_ token: plugin_token, _ error: PluginError, _ generation: Generation) {
        error.lend { _ = generation.calls.reject(token, $0.pointee, from: generation) }
    }

    /// Ends the asynchronous calls to which the module had not replied, and cancels those that it has made. Called
    /// once, after the end of the process. Does not wait for their callers, whose code may block.
    func endCalls(of generation: Generation) {
        for record in runningCalls() where record.pointer.pointee.is_pooled != 0 {
            let token = record.token
            let isMade = record.isMade(by: .passUnretained(generation))
            guard record.phase(of: token) != .over, isMade || record.belongs(to: generation) else { continue }
            ThreadPool.deliveries.run { self.endCall(token, isMade: isMade, generation) }
        }
    }

    private func endCall(_ token: plugin_token, isMade: Bool, _ generation: Generation) {
        if isMade {
            Calls.abandon(token, PluginError(.cancelled, "The module that made the call is no longer running."))
        }
        guard let record = CallRecord(token: token), record.belongs(to: generation), record.phase(of: token) != .over,
            let endpoint = record.endpoint, endpoint.isAsync
        else { return }
        answer(token, crash(endpoint.title, generation), generation)
    }
}
