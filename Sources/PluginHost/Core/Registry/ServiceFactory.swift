import CPluginABI
import CPluginHost
import PluginABI
import PluginFile

/// A factory of the objects of a service that is not a singleton. Each object has an instance of its own, and the
/// actions of the target.
///
/// Making an object is an ordinary call of the module with an endpoint of its own, so the module's factory can reject
/// it, and the calls of a serial module still run one at a time.
final class ServiceFactory: Sendable {
    /// The endpoint that makes an instance and replies with an object that has it. Called with `isFresh`.
    let endpoint: Endpoint
    /// The type of the objects that the factory makes.
    let type: ObjectTypeEntry

    init(
        _ service: ModuleManifest.Service, _ actions: [String: Endpoint], of generation: Generation,
        _ instances: InstanceProvider, _ gate: SerialGate?
    ) {
        let type = ObjectTypeEntry(
            name: service.name, actions: actions.mapValues(\.withoutInstance), generation: generation,
            instances: instances)
        self.type = type
        endpoint = Endpoint(
            name: .immortal("the service \(service.name)"), isAsync: false, generation: generation,
            instances: instances, gate: gate, data: Unmanaged.passRetained(type).toOpaque()
        ) { data, call, _, _ in
            let type = Unmanaged<ObjectTypeEntry>.fromOpaque(data!).takeUnretainedValue()
            ServiceFactory.make(type, call!.pointee)
        }
    }

    private static func make(_ type: ObjectTypeEntry, _ call: plugin_call) {
        let host = type.generation.hostTable!
        let object = ObjectTable.create(type, call.instance, nil)
        guard object != 0 else {
            PluginError(.instanceFailed, "No handle of the service can be made: too many objects exist.").lend {
                _ = host.pointee.reject(host, call.token, $0)
            }
            return
        }
        // The instance now belongs to the object instead of the call.
        CallRecord(token: call.token)?.pointer.pointee.instance = nil
        var value = plugin_value_object(object)
        _ = host.pointee.resolve(host, call.token, &value)
        _ = ObjectTable.release(object)
    }
}

extension Endpoint {
    /// The action without its provider of instances, for objects that provide the instance themselves.
    fileprivate var withoutInstance: Endpoint {
        Endpoint(
            name: nameBytes, parameters: Array(parameters), isAsync: isAsync, hasRest: hasRest,
            generation: generation, gate: gate, data: data, invoke: invoke)
    }
}
