import CPluginWire
import Glibc
import PluginABI

@testable import PluginHost

extension FuzzTarget {
    /// A message from a worker, as it arrives: bytes in shared memory, which the host copies, checks and reads.
    ///
    /// The first byte states how the message arrives and whether its length is corrected; its head and values follow.
    func testWire(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > MessageBytes.headSize, let way = bytes.first else { return }
        let message = MessageBytes(UnsafeRawBufferPointer(rebasing: bytes[1...]), isRight: way & 0x80 == 0)
        Channel.shared.receive(message, inRoom: way == 0x0F)
    }

    /// A module's description from a scan process, with the step and the reason beside it.
    func testScan(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > MessageBytes.headSize, let way = bytes.first else { return }
        let message = MessageBytes(UnsafeRawBufferPointer(rebasing: bytes[1...]), isRight: way & 0x80 == 0)
        ScanMemory.shared.read(message)
    }

    /// The messages of a worker that have values, and only one of them in a room, which takes more time.
    static var wireSeeds: [[UInt8]] {
        let packed = messages.map { MessageBytes.packed($0.0, $0.1) }
        return packed.map { [0] + $0 } + [[0x0F] + packed[0]]
    }

    private static var messages: [(plugin_wire_kind, Value)] {
        let text = Value.string("text é漢")
        let map: Value = ["a": text, "list": [1, 2.5, true, nil, ["x": []]], "": .bytes([1, 2, 3])]
        let nested = (0..<100).reduce(Value.list([])) { inner, _ in .list([inner]) }
        let table = Value.map(["A/x": true, "T#y": false, "@init": true])
        let manifest = Value.string(#"{"name":"M","version":"1.0.0"}"#)
        return [
            (PLUGIN_WIRE_RESOLVE, .list([map])), (PLUGIN_WIRE_RESOLVE, .list([nested])),
            (PLUGIN_WIRE_REJECT, ["code", text, "source"]), (PLUGIN_WIRE_CONFINED, [["a part", "another"]]),
            (PLUGIN_WIRE_PERFORM, [96, 0, "Target", "action", 0, map, 3, 0, 0, "1.0"]),
            (
                PLUGIN_WIRE_DESCRIBE,
                [.int(Int(PLUGIN_ABI_MAGIC)), 104, 1, 0, "swift 6.3", 9, manifest, 30, table, 3, .map([:])]
            ),
        ]
    }
}

/// The bytes of a message: its head and its values.
struct MessageBytes {
    /// The offset in the head of the number of bytes of the values.
    private static let lengthOffset = 52
    static let headSize = 56

    var head: [UInt8]
    let values: [UInt8]

    /// - Parameter isRight: Whether the length in the head, which mutations change, is set to that of the values.
    init(_ bytes: UnsafeRawBufferPointer, isRight: Bool) {
        head = Array(bytes.prefix(Self.headSize))
        values = Array(bytes.dropFirst(Self.headSize))
        guard isRight else { return }
        let length = UInt32(values.count & ~7)
        withUnsafeBytes(of: length) { head.replaceSubrange(Self.lengthOffset..<Self.headSize, with: $0) }
    }

    /// The bytes of a message that carries the values of a list.
    static func packed(_ kind: plugin_wire_kind, _ values: Value) -> [UInt8] {
        var bytes: [UInt8] = []
        do throws(PluginError) {
            try values.lend { list in
                var message = plugin_wire_message()
                (message.kind, message.values, message.count) = (kind.rawValue, list.as.list, list.count)
                var count = 0
                guard let packed = plugin_wire_pack(&message, &count) else { return }
                bytes = Array(UnsafeBufferPointer(start: packed, count: count).dropFirst(8))
                free(packed)
            }
        } catch {
            preconditionFailure(error.message)
        }
        return bytes
    }
}

/// A channel between a host and a worker, both in this process. Used by the one thread of libFuzzer.
final class Channel {
    nonisolated(unsafe) static let shared = Channel()

    // Where things are in the memory of a channel, see channels.c.
    private static let headOffset = 8
    private static let roomOffset = 80
    private static let valuesOffset = 128 + Int(PLUGIN_WIRE_CHANNEL_BYTES)
    private static let size = 1 << 20
    private static let inRoom: UInt32 = 0x8000_0000

    private var host: OpaquePointer!
    private var worker: OpaquePointer!
    private var memory: UnsafeMutableRawPointer!

    private init() { open() }

    private func open() {
        let descriptor = plugin_wire_create()
        host = plugin_wire_map(descriptor, PLUGIN_WIRE_HOST)
        worker = plugin_wire_map(descriptor, PLUGIN_WIRE_WORKER)
        memory = mmap(nil, Self.size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
        precondition(host != nil && worker != nil && memory != MAP_FAILED, "The memory cannot be mapped.")
        close(descriptor)
    }

    /// The worker passes the turn to the host, which finds these bytes and answers.
    func receive(_ bytes: MessageBytes, inRoom: Bool) {
        var empty = plugin_wire_message()
        _ = plugin_wire_send(worker, 0, &empty)
        bytes.head.withUnsafeBytes { (memory + Self.headOffset).copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
        if inRoom {
            putIntoRoom(bytes.values)
        } else {
            bytes.values.withUnsafeBytes { values in
                guard let start = values.baseAddress else { return }
                (memory + Self.valuesOffset).copyMemory(from: start, byteCount: values.count)
            }
        }
        precondition(plugin_wire_await(host, 0, 0) == PLUGIN_WIRE_ARRIVED, "The turn was passed.")
        var message = plugin_wire_message()
        if plugin_wire_receive(host, 0, &message) == 0 {
            check(message)
            plugin_wire_dispose(&message)
        }
        var answer = plugin_wire_message.answer()
        _ = plugin_wire_send(host, 0, &answer)
        precondition(plugin_wire_await(worker, 0, 0) == PLUGIN_WIRE_ARRIVED, "The turn was passed back.")
    }

    /// Does what the worker does: requests a room, and writes there.
    private func putIntoRoom(_ values: [UInt8]) {
        var descriptor: Int32 = -1
        var room = plugin_wire_give(host, Int64(PLUGIN_WIRE_CHANNEL_BYTES) + 8, &descriptor)
        if room == 0 {
            // Rooms that a message does not name correctly remain the worker's.
            plugin_wire_close_rooms(host)
            plugin_wire_unmap(host)
            plugin_wire_unmap(worker)
            munmap(memory, Self.size)
            open()
            var empty = plugin_wire_message()
            _ = plugin_wire_send(worker, 0, &empty)
            room = plugin_wire_give(host, Int64(PLUGIN_WIRE_CHANNEL_BYTES) + 8, &descriptor)
        }
        _ = values.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        close(descriptor)
        memory.storeBytes(of: room, toByteOffset: Self.roomOffset, as: UInt32.self)
        let kind = memory.load(fromByteOffset: Self.headOffset, as: UInt32.self)
        memory.storeBytes(of: kind | Self.inRoom, toByteOffset: Self.headOffset, as: UInt32.self)
    }

    /// Reads an accepted message as the host does. Writing the message and reading it again does not change it.
    private func check(_ message: plugin_wire_message) {
        readValues(of: message)
        let first = pack(message)
        var again = plugin_wire_message()
        let isRead = first.withUnsafeBufferPointer { plugin_wire_unpack(nil, $0.baseAddress, $0.count, &again) == 0 }
        precondition(isRead, "The message that was written cannot be read.")
        precondition(pack(again) == first, "The message has changed.")
        plugin_wire_dispose(&again)
    }

    private func pack(_ message: plugin_wire_message) -> [UInt8] {
        var copy = message
        copy.room = 0
        var count = 0
        guard let bytes = plugin_wire_pack(&copy, &count) else { preconditionFailure("It is too large.") }
        defer { free(bytes) }
        return Array(UnsafeBufferPointer(start: bytes, count: count).dropFirst(8))
    }
}

/// The memory that a host shares with a scan process.
final class ScanMemory {
    nonisolated(unsafe) static let shared = ScanMemory()

    // Where things are in the memory, see scan.c.
    private static let reasonsOffset = 4 * Int(PLUGIN_SCAN_MAX_FILES)
    private static let lengthOffset = reasonsOffset + Int(PLUGIN_SCAN_MAX_FILES * PLUGIN_SCAN_REASON_BYTES)

    private let scan: OpaquePointer
    private let memory: UnsafeMutableRawPointer

    private init() {
        let descriptor = plugin_scan_create()
        scan = plugin_scan_map(descriptor)!
        memory = mmap(nil, Self.lengthOffset + 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)!
        precondition(memory != MAP_FAILED, "The memory cannot be mapped.")
        close(descriptor)
    }

    func read(_ bytes: MessageBytes) {
        let all = bytes.head + bytes.values
        all.withUnsafeBytes { bytes in
            (memory + Self.lengthOffset + 16).copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
            (memory + Self.reasonsOffset).copyMemory(from: bytes.baseAddress!, byteCount: min(1000, bytes.count))
        }
        // Some values of the last byte make the length wrong.
        let length = UInt64(8 + all.count) &+ (all.last == 0xFF ? UInt64(all[all.count - 2]) << 56 : 0)
        memory.storeBytes(of: length, toByteOffset: Self.lengthOffset, as: UInt64.self)
        var reason = [CChar](repeating: 1, count: Int(PLUGIN_SCAN_REASON_BYTES))
        plugin_scan_get_reason(scan, 0, &reason)
        precondition(reason.last == 0, "The reason is not terminated.")
        var message = plugin_wire_message()
        guard plugin_scan_get_description(scan, &message) == 0 else { return }
        readValues(of: message)
        plugin_wire_dispose(&message)
    }
}

/// Reads a message in every way in which the host reads messages of a worker.
private func readValues(of message: plugin_wire_message) {
    for index in 0..<min(12, Int(message.count)) {
        _ = (message.int(index), message.text(index), message.texts(index))
        for entry in message.map(index) ?? UnsafeBufferPointer(start: nil, count: 0) { _ = entry.key.text }
    }
    _ = message.arguments.objects
    message.arguments.dropObjects { _ in false }
    for value in message.arguments {
        do throws(PluginError) { try value.check() } catch { continue }
        var noHost = plugin_host()
        _ = Value(copying: value, host: &noHost)
    }
}
