import PluginABI

// Endpoints of the host itself whose only argument is the address of one of the host's objects, passed as a number.

extension Calls {
    /// Calls an endpoint of the host itself that takes over an object with ``takeCarried(_:_:)``.
    ///
    /// - Throws: The error of a call that does not reach the endpoint; the object is then released.
    func invoke(
        _ endpoint: Endpoint, carrying object: some AnyObject, _ call: Call, _ thread: ThreadContext,
        _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        occupy(record, .passUnretained(endpoint), call)
        let carried = Unmanaged.passRetained(object)
        do throws(PluginError) {
            return try Parameters(positional: [.int(Int(bitPattern: carried.toOpaque()))]).lend {
                (entries) throws(PluginError) in try invoke(endpoint, entries, call, thread, record)
            }
        } catch {
            carried.release()
            throw error
        }
    }

    /// Returns the object whose address is the endpoint's only argument, and takes ownership of it.
    static func takeCarried<Carried: AnyObject>(
        _ type: Carried.Type, _ arguments: UnsafePointer<plugin_value>?
    ) -> Carried {
        let address = UnsafeRawPointer(bitPattern: Int(arguments![0].as.integer))!
        return Unmanaged<Carried>.fromOpaque(address).takeRetainedValue()
    }
}
