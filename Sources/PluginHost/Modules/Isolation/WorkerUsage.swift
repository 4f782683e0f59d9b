import CPluginHost
import Glibc
import Synchronization

extension WorkerProcess {
    var usage: ProcessUsage? {
        // A duplicate of the descriptor, so that calls do not wait for this function, and nothing closes it during the
        // reading.
        let descriptor = state.withLock { $0.descriptor < 0 ? -1 : fcntl($0.descriptor, F_DUPFD_CLOEXEC, 0) }
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var resident: UInt64 = 0
        var time: UInt64 = 0
        guard plugin_host_process_usage(descriptor, id, &resident, &time) == 0 else { return nil }
        return ProcessUsage(
            process: id, residentBytes: Int(clamping: resident), processorTime: .nanoseconds(Int64(clamping: time)))
    }
}
