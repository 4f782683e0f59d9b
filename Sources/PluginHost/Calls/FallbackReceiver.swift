import PluginABI

/// The receiver of a call that the program's fallback handles. The fallback is one callback for all names, so this
/// receiver puts the names of the call into the error of a deadline.
final class FallbackReceiver {
    private let action: String
    private let receiver: Calls.Receiver

    private init(_ action: String, _ receiver: Calls.Receiver) { (self.action, self.receiver) = (action, receiver) }

    /// Makes a call with a receiver of this type.
    ///
    /// - Parameters:
    ///   - action: `target/action`.
    ///   - call: The call. Its receiver gets the outcome in the end.
    ///   - body: Makes the call. If it throws, it has not passed on an outcome.
    static func naming<Result>(
        _ action: String, _ call: Calls.Call, _ body: (Calls.Call) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        let own = Unmanaged.passRetained(FallbackReceiver(action, call.receiver))
        var call = call
        call.receiver = Calls.Receiver(complete, own.toOpaque())
        do throws(PluginError) { return try body(call) } catch {
            own.release()
            throw error
        }
    }

    /// The message of ``PluginError/deadlineExceeded(_:)`` for a callback.
    private static let lateCallback = "callback did not reply before its deadline."

    private static let complete: plugin_completion = { data, value, error in
        let own = Unmanaged<FallbackReceiver>.fromOpaque(data!).takeRetainedValue()
        guard let error, case let read = PluginError(error.pointee), read.code == .deadlineExceeded,
            read.message == FallbackReceiver.lateCallback
        else {
            return own.receiver.completion(own.receiver.data, value, error)
        }
        own.receiver.receive(
            PluginError(
                .deadlineExceeded,
                "The program's fallback for \(own.action.shortened) did not reply before its deadline."))
    }
}
