import CPluginWire
import Glibc
import PluginABI

// Values that take more bytes than a channel has: they are in rooms, see plugin_wire.h.

extension WorkerProcess {
    /// Sends a message on a channel. Its values are borrowed.
    ///
    /// - Returns: `PLUGIN_WIRE_PUT`; without sending it, `PLUGIN_WIRE_TOO_LARGE` or `PLUGIN_WIRE_NO_ROOM`.
    func send(_ message: plugin_wire_message, _ link: WorkerLink, _ channel: UInt32) -> Int32 {
        var message = message
        guard message.room == 0 else {
            handOver(message.room, link)
            return plugin_wire_send(link.wire, channel, &message)
        }
        if plugin_wire_send(link.wire, channel, &message) == 0 { return PLUGIN_WIRE_PUT }
        let result = plugin_wire_put(link.wire, &message)
        guard result == PLUGIN_WIRE_PUT else { return result }
        defer { plugin_wire_dispose(&message) }  // The room then belongs to the worker.
        return send(message, link, channel)
    }

    /// Sends the worker the descriptor of a room that contains values of the host.
    func handOver(_ room: UInt32, _ link: WorkerLink) { handOver(room, plugin_wire_lend(link.wire, room)) }

    private func handOver(_ room: UInt32, _ descriptor: Int32) {
        var message = plugin_wire_message()
        (message.kind, message.a) = (PLUGIN_WIRE_HAND_OVER.rawValue, UInt64(room))
        postOverSocket(message, descriptor)
    }

    /// Serves the request for a room.
    func giveRoom(_ bytes: Int64) -> plugin_wire_message {
        guard let link else { return .answer() }
        var descriptor: Int32 = -1
        let room = plugin_wire_give(link.wire, bytes, &descriptor)
        if room != 0 { handOver(room, descriptor) }
        return .answer(UInt64(room))
    }

    /// Records that the worker no longer uses a room.
    func leaveRoom(_ room: UInt32) {
        if let link, plugin_wire_leave(link.wire, room) != 0 {
            doom("Its process sent an invalid message, and was ended.")
        }
    }
}

extension PluginError {
    /// The error for values that take too many bytes.
    static var tooLargeForWorker: PluginError {
        PluginError(
            .invalidValue,
            "The values take more than \(PLUGIN_WIRE_MAX_MIB) MiB, which is the most that can be passed to or from an "
                + "isolated module. Pass less at a time, or use a file.")
    }

    /// The error for values for which there is no memory.
    static var noRoomForWorker: PluginError {
        PluginError(
            .overloaded,
            "There is no memory for the values: the large values of an isolated module may take "
                + "\(PLUGIN_WIRE_ROOMS_GIB) GiB at a time, in at most \(PLUGIN_WIRE_ROOMS) calls and results. Pass "
                + "less at a time.")
    }

    /// The error for values that were not sent.
    ///
    /// - Parameter reason: `PLUGIN_WIRE_TOO_LARGE` or `PLUGIN_WIRE_NO_ROOM`.
    static func unsentToWorker(_ reason: Int32) -> PluginError {
        reason == PLUGIN_WIRE_TOO_LARGE ? .tooLargeForWorker : .noRoomForWorker
    }
}
