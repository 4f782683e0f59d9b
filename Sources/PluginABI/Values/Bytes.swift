/// An immutable sequence of bytes at a fixed address, shared and never copied. Bytes cross the boundary in this form.
///
/// Copying a `Bytes` copies a reference. Passing one as a parameter passes its address to the module.
public struct Bytes: Sendable, Hashable {
    /// The owner of the memory. Immutable after `init`, hence `@unchecked Sendable`.
    final class Storage: @unchecked Sendable {
        let buffer: UnsafeMutableRawBufferPointer

        init(count: Int) { buffer = .allocate(byteCount: count, alignment: 16) }
        deinit { buffer.deallocate() }
    }

    let storage: Storage

    /// Makes `count` zero bytes, and lets `fill` change them. `count` must not be negative.
    public init(count: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
        storage = Storage(count: count)
        storage.buffer.initializeMemory(as: UInt8.self, repeating: 0)
        try fill(storage.buffer)
    }

    /// Copies the bytes of a sequence.
    public init(_ bytes: some Sequence<UInt8>) {
        let array = ContiguousArray(bytes)
        self = array.withUnsafeBytes { Bytes(copying: $0) }
    }

    /// Copies memory.
    public init(copying memory: UnsafeRawBufferPointer) {
        storage = Storage(count: memory.count)
        storage.buffer.copyMemory(from: memory)
    }

    /// The number of bytes.
    public var count: Int { storage.buffer.count }

    /// Lends the memory to `body`. The pointer is valid as long as any copy of this value lives.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withExtendedLifetime(storage) { () throws(Failure) in try body(UnsafeRawBufferPointer(storage.buffer)) }
    }

    public static func == (left: Bytes, right: Bytes) -> Bool {
        left.storage === right.storage || left.elementsEqual(right)
    }

    public func hash(into hasher: inout Hasher) {
        withUnsafeBytes { hasher.combine(bytes: $0) }
    }
}

extension Bytes: RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { count }
    public subscript(index: Int) -> UInt8 { storage.buffer[index] }
}

extension Bytes: ExpressibleByArrayLiteral {
    public init(arrayLiteral elements: UInt8...) { self.init(elements) }
}
