import PluginABI

/// Lends uninitialised memory: up to 512 bytes on the stack, more on the heap.
///
/// For a number of elements that is not constant, `withUnsafeTemporaryAllocation` contains two calls of its closure, so
/// the compiler inlines neither, and retains everything that the closure uses. This function contains one.
@inline(__always)
func withTemporaryMemory<Element, Result>(
    of type: Element.Type, capacity: Int,
    _ body: (UnsafeMutableBufferPointer<Element>) throws(PluginError) -> Result
) throws(PluginError) -> Result {
    let mostOnStack = 512 / MemoryLayout<Element>.stride
    return try withUnsafeTemporaryAllocation(of: type, capacity: mostOnStack) { (memory) throws(PluginError) in
        let isLarge = capacity > mostOnStack
        let start =
            isLarge
            ? UnsafeMutablePointer<Element>.allocate(capacity: capacity) : memory.baseAddress.unsafelyUnwrapped
        defer { if isLarge { start.deallocate() } }
        return try body(UnsafeMutableBufferPointer(start: start, count: capacity))
    }
}
