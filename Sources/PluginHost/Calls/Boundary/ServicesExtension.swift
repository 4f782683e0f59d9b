import PluginABI

extension HostTable {
    /// The extension for services.
    nonisolated(unsafe) static let services = UnsafePointer.immortal(
        plugin_services(
            size: UInt32(MemoryLayout<plugin_services>.size), reserved: 0,
            info: { host, name, version, completion, data in
                let receiver = Calls.Receiver(completion, data)
                do throws(PluginError) {
                    try calls(host).service(name, version).takeUnretainedValue().lend(nil) { receiver.receive($0) }
                } catch {
                    receiver.receive(error)
                }
            },
            request: { host, parent, name, version, completion, data in
                caller(host)._withUnsafeGuaranteedRef { caller in
                    let receiver = Calls.Receiver(completion, data)
                    do throws(PluginError) {
                        try caller.calls.requestService(name, version, parent: parent) { receiver.receive($0) }
                    } catch {
                        receiver.receive(error)
                    }
                }
            },
            wait: { host, parent, name, version, timeout, completion, data in
                let caller = caller(host).takeUnretainedValue()
                return caller.calls.awaitService(
                    name, version, parent: parent, timeout: timeout, from: caller, to: .init(completion, data))
            }))
}
