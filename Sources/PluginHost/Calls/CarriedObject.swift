import PluginABI

// Endpoints of the host itself that get an object of the host as their only argument: the number of its address.

extension Calls {
    /// Calls an endpoint of the host itself that takes over an object with ``takeCarried(_:_:)``.
    ///
    /// - Throws: The errors of a call that does not reach the endpoint. Then the object is released.
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

    /// Returns the object that is the only argument of such an endpoint.
    static func takeCarried<Carried: AnyObject>(
        _ type: Carried.Type, _ arguments: UnsafePointer<plugin_value>?
    ) -> Carried {
        let address = UnsafeRawPointer(bitPattern: Int(arguments![0].as.integer))!
        return Unmanaged<Carried>.fromOpaque(address).takeRetainedValue()
    }
}
