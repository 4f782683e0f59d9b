import CPluginHost
import PluginFile

/// What most starts with known modules need, prepared on the thread that reads the registry cache while the host lists
/// the folders.
struct PreparedRecords: Sendable {
    /// The records of the entries in the cache, in their order; `nil` if an entry must be looked at again.
    let records: [FileRecord?]
    /// The plan if these are all files; `nil` if candidates must be compared.
    let registrations: Registrations?

    init(records: [FileRecord?], registrations: Registrations?) {
        (self.records, self.registrations) = (records, registrations)
    }

    /// - Parameter routes: The current routes.
    init(of content: RegistryContent, _ registrar: Registrar, _ routes: Routes) {
        var records: [FileRecord?] = []
        records.reserveCapacity(content.count)
        for index in 0..<content.count {
            if index.isMultiple(of: 64) { plugin_host_extend_heap(96 << 10) }
            let file = content[index]
            let folder = file.libraries.isEmpty ? registrar.folder(of: file.path) : nil
            records.append(folder.flatMap { registrar.record(of: file, in: $0) })
        }
        self.init(records: records, registrations: Registrations(records.compactMap(\.self), routes))
    }
}
