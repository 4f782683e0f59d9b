import PluginABI
import PluginFile
import Synchronization

/// The types of the program's objects.
///
/// Types are never freed, because calls and status refer to their actions without reference counting. Objects whose
/// types are declared alike share one, so the memory does not grow with the number of objects.
final class ProgramTypes: Sendable {
    private let types = Mutex<[String: ObjectTypeEntry]>([:])

    /// Returns the type that a declaration describes.
    ///
    /// - Parameters:
    ///   - declaration: JSON, as in a manifest.
    ///   - program: The program of the host.
    /// - Throws: `invalidManifest`, naming the action and parameter that is wrong.
    func type(_ declaration: String, of program: Generation) throws(PluginError) -> ObjectTypeEntry {
        if let known = types.withLock({ $0[declaration] }) { return known }
        let type = try ModuleManifest.ObjectType(parsing: declaration)
        return types.withLock { types in
            if let known = types[declaration] { return known }
            let made = Self.makeType(type, of: program)
            types[declaration] = made
            return made
        }
    }

    private static func makeType(_ type: ModuleManifest.ObjectType, of program: Generation) -> ObjectTypeEntry {
        var actions: [String: Endpoint] = [:]
        for (number, action) in type.actions.enumerated() {
            actions[action.name] = Endpoint(
                name: .immortal("\(type.name)#\(action.name)"),
                parameters: action.parameters.map(Endpoint.Parameter.init), isAsync: action.isAsync,
                hasRest: action.hasRest, generation: program, data: UnsafeMutableRawPointer(bitPattern: number)
            ) { data, call, arguments, count in
                let object = Unmanaged<ProgramObject>.fromOpaque(call!.pointee.instance).takeUnretainedValue()
                object.run(Int(bitPattern: data), call!, arguments, count)
            }
        }
        var prefixHandlers: [PrefixHandler] = []
        prefixHandlers.append(type.actions, of: type.name, actions)
        return ObjectTypeEntry(
            name: type.name, actions: actions, generation: program, prefixHandlers: prefixHandlers.inOrder)
    }
}
