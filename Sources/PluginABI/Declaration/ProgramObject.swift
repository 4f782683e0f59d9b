/// The instance behind an object of the program, with the actions of its type.
///
/// The actions of a module's object are in the function table of the module. The program has no function table, so each
/// of its objects has its own actions, and the host keeps only their declarations.
package final class ProgramObject: Sendable {
    private let type: ObjectTypeDeclaration
    // Immutable, and the host's table lives as long as the process.
    private nonisolated(unsafe) let instance: UnsafeMutableRawPointer
    private nonisolated(unsafe) let host: UnsafePointer<plugin_host>

    package init<Instance: Sendable>(
        _ type: ObjectType<Instance>, _ instance: Instance, host: UnsafePointer<plugin_host>
    ) {
        self.type = type.declaration
        self.instance = InstanceBox.retained(instance)
        self.host = host
    }

    deinit { destroyInstance(instance) }

    /// The declaration of the type as JSON, as in a manifest.
    package var declaration: String { type.json(type.actions.map { $0.json(showsResult: true, nil) }) }

    /// Runs the action with this number, in the order of the declaration. The action replies like one of a module.
    package func run(
        _ number: Int, _ call: UnsafePointer<plugin_call>, _ arguments: UnsafePointer<plugin_value>?, _ count: UInt32
    ) {
        var call = call.pointee
        call.instance = instance
        withUnsafePointer(to: call) { call in
            let invocation = Invocation(call: call, arguments: arguments, count: count, host: host)
            let action = type.actions[number]
            do {
                try action.run(invocation)
            } catch {
                invocation.reject(error, action.names(type.name + "#"))
            }
        }
    }
}
