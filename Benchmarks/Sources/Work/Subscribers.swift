import CPluginABI
import PluginABI

/// The subscribers of an event without a host: the functions from the modules' descriptions, called through pointers.
/// This is the least that calling so many libraries costs, since each has code and data of its own.
struct Subscribers {
    private let functions: [(invoke: plugin_invoke, data: UnsafeMutableRawPointer?)]

    /// Opens modules, and finds the subscriber of each to an event.
    init(of event: String, in files: [String]) {
        functions = files.map { file in
            let module = Opened.activate(file)
            let all = UnsafeBufferPointer(start: module.functions, count: Int(module.function_count))
            guard let found = all.first(where: { $0.name.text == "!\(event)" }) else {
                fatalError("\(file) does not subscribe to \(event).")
            }
            return (found.invoke, found.data)
        }
    }

    /// Calls all of them with one number.
    func tell(_ number: Int64) {
        withUnsafePointer(to: plugin_value_int(number)) { argument in
            for function in functions {
                var result = plugin_value(kind: PLUGIN_KIND_NONE, count: 0, as: .init())
                withUnsafeMutablePointer(to: &result) { result in
                    var call = plugin_call()
                    call.size = UInt32(MemoryLayout<plugin_call>.size)
                    call.flags = PLUGIN_CALL_IN_PLACE
                    call.result = result
                    function.invoke(function.data, &call, argument, 1)
                }
            }
        }
    }
}
