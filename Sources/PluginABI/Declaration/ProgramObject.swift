/// The instance behind an object of the program, with the actions of its type.
///
/// An object of a module has its actions in the function table of the module. The program has none, so each of its
/// objects brings them along; the host keeps only what the actions declare.
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
    package var declaration: String { type.json(type.actions.map { $0.json(showsResult: true) }) }

    /// Runs the action with this number, in the order of the declaration. It replies like the function of a module.
    package func run(
        _ number: Int, _ call: UnsafePointer<plugin_call>, _ arguments: UnsafePointer<plugin_value>?, _ count: UInt32
    ) {
        var call = call.pointee
        call.instance = instance
        withUnsafePointer(to: call) { call in
            let invocation = Invocation(call: call, arguments: arguments, count: count, host: host)
            do {
                try type.actions[number].run(invocation)
            } catch {
                invocation.reject(error)
            }
        }
    }
}
