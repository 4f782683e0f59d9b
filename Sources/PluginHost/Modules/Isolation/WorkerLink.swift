import CPluginWire
import Glibc
import PluginABI
import PluginFile
import Synchronization

/// The shared memory of a host and one worker process, with its channels. It is unmapped when no thread uses it.
final class WorkerLink: @unchecked Sendable {
    // The C functions synchronize the two sides; a channel is used by one thread at a time, to which `acquire` or the
    // worker's request has given it. Hence `@unchecked Sendable`.

    let wire: OpaquePointer
    /// The host's channels that have been used before and are free now.
    private let free = FreeChannels()
    /// The first channel of the host that was never used.
    private let fresh = Atomic<UInt32>(0)
    /// The channels on which a call did not return in time.
    private let lost = Mutex<[UInt32: Lost]>([:])

    /// The calls on one channel that did not return in time.
    struct Lost {
        /// The calls, inner ones first: for each that makes an instance, the number of the factory.
        var factories: [UInt64?] = []
        /// The end of the module's time for the last of them, in nanoseconds of CLOCK_MONOTONIC.
        var limit: Int64 = 0
        /// Whether one of the calls is serial, so that no other serial call may run until it ends.
        var isSerial = false
    }

    /// - Throws: `outOfResources`.
    init(memory: Int32) throws(PluginError) {
        guard let wire = plugin_wire_map(memory, PLUGIN_WIRE_HOST) else {
            throw .noWorkerResource("The memory for it cannot be mapped")
        }
        self.wire = wire
    }

    deinit { plugin_wire_unmap(wire) }

    // MARK: Channels

    /// Returns a channel for a call of this thread; `nil` if all are in use.
    func acquire() -> (channel: UInt32, isFresh: Bool)? {
        if let channel = free.remove() { return (channel, false) }
        var next = fresh.load(ordering: .relaxed)
        while next < PLUGIN_WIRE_DOWN_CHANNELS {
            let (isOurs, found) = fresh.compareExchange(expected: next, desired: next + 1, ordering: .relaxed)
            if isOurs { return (next, true) }
            next = found
        }
        return nil
    }

    func giveBack(_ channel: UInt32) { free.insert(channel) }

    /// The channel on which this thread serves a request of the worker: its next call uses that one, too, because the
    /// thread on the other side waits there.
    var channelOfThread: UInt32? {
        var frame = plugin_wire_frames()
        while let next = frame {
            if next.pointee.wire == wire { return next.pointee.channel }
            frame = next.pointee.outer
        }
        return nil
    }

    /// How many nested requests of workers this thread serves.
    static var nesting: Int {
        var count = 0
        var frame = plugin_wire_frames()
        while let next = frame {
            count += 1
            frame = next.pointee.outer
        }
        return count
    }

    /// Runs `body` while this thread serves a request on a channel.
    func serving<Result>(_ channel: UInt32, _ body: () -> Result) -> Result {
        var frame = plugin_wire_frame(wire: wire, channel: channel, outer: plugin_wire_frames())
        return withUnsafeMutablePointer(to: &frame) { frame in
            plugin_wire_set_frames(frame)
            defer { plugin_wire_set_frames(frame.pointee.outer) }
            return body()
        }
    }

    /// How many messages the channels have carried; `nil` while one of them is not answered. May be read by any thread.
    var traffic: UInt64? {
        let count = plugin_wire_traffic(wire)
        return count == .max ? nil : count
    }

    // MARK: Lost calls

    /// Records that a call on a channel has not returned in time. Returns whether it is the first one there.
    ///
    /// - Parameter factory: The number of the factory if the call makes an instance.
    func lose(_ channel: UInt32, limit: Int64, isSerial: Bool, _ factory: UInt64?) -> Bool {
        lost.withLock { lost in
            let known = lost[channel] ?? Lost()
            lost[channel] = Lost(
                factories: known.factories + [factory], limit: max(limit, known.limit),
                isSerial: isSerial || known.isSerial)
            return known.factories.isEmpty
        }
    }

    func isLost(_ channel: UInt32) -> Bool { lost.withLock { $0[channel] != nil } }

    /// Returns the lost calls on a channel, and forgets them.
    func takeLost(_ channel: UInt32) -> Lost { lost.withLock { $0.removeValue(forKey: channel) ?? Lost() } }

    // MARK: Messages

    /// How a wait for a message ended: with a message, with the end of the worker, at the deadline, or with an invalid
    /// message.
    enum Arrival { case arrived, ended, late, invalid }

    /// Waits for the next message on a channel, until a deadline in nanoseconds of CLOCK_MONOTONIC; 0 for none.
    func receive(_ channel: UInt32, until deadline: Int64, _ message: inout plugin_wire_message) -> Arrival {
        switch plugin_wire_await(wire, channel, deadline) {
        case PLUGIN_WIRE_ARRIVED: plugin_wire_receive(wire, channel, &message) == 0 ? .arrived : .invalid
        case PLUGIN_WIRE_ENDED: .ended
        case PLUGIN_WIRE_SPOILED: .invalid
        default: .late
        }
    }
}

extension PluginError {
    /// The error of a module that cannot have a worker, for lack of a resource.
    static func noWorkerResource(_ what: String) -> PluginError {
        let reason = describe(errno: errno)
        return PluginError(
            .outOfResources, "A process for an isolated module cannot be started. \(what): \(reason).")
    }
}
