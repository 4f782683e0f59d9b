internal import PluginABI
internal import PluginHost

/// An action that a check performs: an action of a target, or of an object that an action has returned.
struct CheckedCall: Sendable {
    /// The action as messages show it: `Target/action`, `Type#action`.
    let title: String
    let action: CheckedManifest.Action
    private let receiver: Receiver

    private enum Receiver: Sendable {
        case target(String)
        case object(Object)
    }

    init(_ target: String, _ action: CheckedManifest.Action) {
        (title, self.action, receiver) = ("\(target)/\(action.name)", action, .target(target))
    }

    init(_ object: Object, _ type: String, _ action: CheckedManifest.Action) {
        (title, self.action, receiver) = ("\(type)#\(action.name)", action, .object(object))
    }

    /// Performs the call with parameters that the action may use until this function returns. Ignores the outcome.
    func perform(lending entries: UnsafeBufferPointer<plugin_entry>, in host: PluginHost, timeout: Duration) {
        switch receiver {
        case .target(let target):
            host.call(target, action.name, lending: entries, timeout: timeout, { _, _, _ in }, nil)
        case .object(let object):
            host.call(object, action.name, lending: entries, timeout: timeout, { _, _, _ in }, nil)
        }
    }

    func perform(
        _ parameters: Parameters, in host: PluginHost, timeout: Duration
    ) async -> Result<Value, PluginError> {
        do throws(PluginError) {
            switch receiver {
            case .target(let target):
                return .success(try await host.call(target, action.name, parameters, timeout: timeout))
            case .object(let object):
                return .success(try await object.call(action.name, parameters, timeout: timeout))
            }
        } catch {
            return .failure(error)
        }
    }
}
