internal import CPluginHost
internal import Glibc
internal import PluginABI
internal import PluginHost
internal import Synchronization

/// The service manager that has started this program, such as systemd. The program reports its state like `sd_notify`.
final class ServiceManager: Sendable {
    private let address: String
    private let log: @Sendable (LogEntry) -> Void
    /// How often the service manager expects to hear that the host is alive; `nil` if it does not.
    private let watchdog: Duration?
    private let timer = SerialThread("host.watchdog")
    private let hasFailed = Atomic(false)
    private let isStopped = Atomic(false)

    /// Returns `nil` if `NOTIFY_SOCKET` is not set.
    init?(_ variables: [String: String], log: @escaping @Sendable (LogEntry) -> Void) {
        guard let address = variables["NOTIFY_SOCKET"], !address.isEmpty else { return nil }
        (self.address, self.log) = (address, log)
        let isForThis = variables["WATCHDOG_PID"].map { Int32($0) == getpid() } ?? true
        let microseconds = variables["WATCHDOG_USEC"].flatMap(Int.init)
        watchdog = isForThis ? microseconds.flatMap { $0 > 0 ? .microseconds($0) : nil } : nil
    }

    /// Reports that the host serves.
    func ready(_ host: PluginHost) {
        let modules = host.modules
        let (active, starting) = (modules.count { $0.state == .active }, modules.count { $0.state == .starting })
        let others = starting == 0 ? "" : ", \(starting) starting"
        send("READY=1\nSTATUS=\(counted(active, "module")) active\(others)")
    }

    /// Reports that the host scans its folders and reads its configuration again. ``ready(_:)`` ends that.
    func reloading() { send("RELOADING=1\nMONOTONIC_USEC=\(plugin_host_monotonic_microseconds())") }

    /// Reports that the host shuts down.
    func stopping() {
        isStopped.store(true, ordering: .relaxed)
        send("STOPPING=1")
    }

    /// Reports from now on, twice in each interval of the watchdog, that the host is alive: that it can list its
    /// modules, which shows that it holds no lock forever.
    func watch(_ host: PluginHost) {
        guard let watchdog else { return }
        _ = host.modules
        if isStopped.load(ordering: .relaxed) { return }
        send("WATCHDOG=1")
        timer.async(after: watchdog / 2) { [weak self, weak host] in
            if let self, let host { watch(host) }
        }
    }

    private func send(_ message: String) {
        let code = plugin_host_notify(address, message)
        guard code != 0, !hasFailed.exchange(true, ordering: .relaxed) else { return }
        let reason = String(cString: strerror(code))
        log(
            LogEntry(
                level: .warning,
                message: "The service manager cannot be told the state of the host: \(address.printable): \(reason)."))
    }
}
