import CPluginABI
import PluginABI

extension HostTable {
    /// The extension for call contexts.
    nonisolated(unsafe) static let callContext = UnsafePointer.immortal(
        plugin_call_contexts(size: UInt32(MemoryLayout<plugin_call_contexts>.size), reserved: 0) {
            host, call, receiver, data in
            let generation = caller(host).takeUnretainedValue()
            guard let call = call != 0 ? generation.own(call) : ThreadContext.current?.currentCall else { return 0 }
            let context = CallContexts.context(of: call)
            guard !context.isEmpty else { return 0 }
            context.lend { receiver?(data, $0) }
            return 1
        })
}

extension Generation {
    /// Returns the call if it runs in this generation, or if this is the program; otherwise `nil`.
    fileprivate func own(_ call: plugin_token) -> plugin_token? {
        isProgram || CallRecord(token: call)?.belongs(to: self) == true ? call : nil
    }
}
