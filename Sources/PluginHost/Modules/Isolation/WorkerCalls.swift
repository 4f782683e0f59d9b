import CPluginWire
import Glibc
import PluginABI
import Synchronization

// Calls of the host into a worker process.

extension WorkerProcess {
    /// How a call ended.
    enum CallEnding {
        /// The worker has returned; its message has replaced the request, and must be disposed of.
        case returned
        /// The process has ended during the call.
        case ended
        /// The process had ended before.
        case gone
        /// The deadline has passed. The worker may still run the call.
        case late
        /// All channels are in use, a serial call that was too late is still running, or calls between the host and
        /// workers nest too deeply.
        case busy
        /// The values take too many bytes.
        case tooLarge
        /// There is no memory for the values.
        case noRoom
    }

    /// Sends a message, and serves the worker's requests until it returns.
    ///
    /// - Parameter deadline: The deadline of the call, in nanoseconds of CLOCK_MONOTONIC; 0 for none. In any case the
    ///   call ends after `time`. A call that the module makes to itself runs on its caller's thread, so an exceeded
    ///   deadline is reported when the call returns.
    /// - Parameter isSerial: Whether it is a call of a serial module or target.
    /// - Parameter time: Default: ``Isolation/callTimeout``.
    func ask(
        _ message: inout plugin_wire_message, until deadline: Int64 = 0, isSerial: Bool = false,
        within time: Duration? = nil
    ) -> CallEnding {
        guard let link else { return .gone }
        // The depth of calls of actions is limited elsewhere; the depth of the destruction of instances is not.
        guard WorkerLink.nesting <= 2 * Int(PLUGIN_DEPTH_MAX) else { return .busy }
        if let channel = link.channelOfThread {
            guard !link.isLost(channel) else { return .late }
            return exchange(&message, link, channel, 0, isSerial, time)
        }
        if isSerial, lostSerialCalls.load(ordering: .acquiring) > 0 { return .busy }
        guard let (channel, isFresh) = link.acquire() else { return .busy }
        if isFresh { post(PLUGIN_WIRE_SERVE, UInt64(channel)) }
        let ending = exchange(&message, link, channel, deadline, isSerial, time)
        switch ending {
        case .returned, .tooLarge, .noRoom: link.giveBack(channel)
        case .late: awaitReturn(link, channel, giveBack: true)
        case .ended, .gone, .busy: break
        }
        return ending
    }

    private func exchange(
        _ message: inout plugin_wire_message, _ link: WorkerLink, _ channel: UInt32, _ deadline: Int64,
        _ isSerial: Bool = false, _ time: Duration? = nil
    ) -> CallEnding {
        let factory = message.kind == PLUGIN_WIRE_MAKE.rawValue ? message.a : nil
        let result = send(message, link, channel)
        guard result == PLUGIN_WIRE_PUT else {
            if result == PLUGIN_WIRE_TOO_LARGE { return .tooLarge }
            return ending == nil ? .noRoom : .ended  // A process that has ended is given no room.
        }
        // The clock is read while the worker is already at work.
        var limit = monotonicNow().adding(time?.nanoseconds ?? callLimit)
        while true {
            var received = plugin_wire_message()
            switch link.receive(channel, until: deadline == 0 ? limit : min(limit, deadline), &received) {
            case .arrived: break
            case .ended: return .ended
            case .late:
                if link.lose(channel, limit: limit, isSerial: isSerial, factory) { lateCalls.begin() }
                return .late
            case .invalid: return doomForInvalidMessage()
            }
            if received.kind == PLUGIN_WIRE_RETURN.rawValue {
                message = received
                return .returned
            }
            let start = monotonicNow()
            let isSound = answer(&received, link, channel)
            let now = monotonicNow()
            limit = limit.adding(now - start)  // The time that others take does not count.
            let isLost = link.isLost(channel)
            guard isSound || isLost else { return doomForInvalidMessage() }
            // A module may send requests without a pause, so that no wait ever reaches the limit. The limit is
            // therefore checked here, too, with a millisecond to reply.
            if isLost || now - 1_000_000 >= (deadline == 0 ? limit : min(limit, deadline)) {
                if link.lose(channel, limit: limit, isSerial: isSerial, factory) { lateCalls.begin() }
                return .late
            }
        }
    }

    /// Serves a request of the worker and answers it, unless a call on the channel is lost in the meantime. Returns
    /// false if the request is not valid.
    private func answer(
        _ request: inout plugin_wire_message, _ link: WorkerLink, _ channel: UInt32, isCancelled: Bool = false
    ) -> Bool {
        defer { plugin_wire_dispose(&request) }
        let answer = link.serving(channel) { serve(&request, isCancelled: isCancelled) }
        guard var answer else { return false }
        if !link.isLost(channel) {
            sendAnswer(answer, link, channel)
        } else if answer.b != 0 {
            objects.endOutcome(answer.b)  // The worker does not see it.
        }
        plugin_wire_dispose(&answer)
        return true
    }

    private func sendAnswer(_ answer: plugin_wire_message, _ link: WorkerLink, _ channel: UInt32) {
        let result = send(answer, link, channel)
        guard result != PLUGIN_WIRE_PUT else { return }
        if answer.b != 0 { objects.endOutcome(answer.b) }
        var error = PluginError.unsentToWorker(result).answer
        _ = send(error, link, channel)  // A worker leaves room for it.
        plugin_wire_dispose(&error)
    }

    /// Ends a process that has sent an invalid message, and waits for its end.
    private func doomForInvalidMessage() -> CallEnding {
        doom("Its process sent an invalid message, and was ended.")
        let end = monotonicNow() + 5_000_000_000
        while link != nil, monotonicNow() < end { usleep(1000) }
        return .ended
    }

    // MARK: Requests of the worker's own threads

    /// Serves the requests of the module's own threads on a channel, until the process ends.
    func serveRequests(_ link: WorkerLink, _ channel: UInt32) {
        while true {
            var request = plugin_wire_message()
            switch link.receive(channel, until: 0, &request) {
            case .arrived:
                let isSound = answer(&request, link, channel)
                if link.isLost(channel) {
                    awaitReturn(link, channel, giveBack: false)
                } else if !isSound {
                    return doom("Its process sent an invalid message, and was ended.")
                }
            case .invalid: return doom("Its process sent an invalid message, and was ended.")
            case .ended, .late: return
            }
        }
    }

    // MARK: Late calls

    /// Takes care of a channel whose call has not returned in time: refuses the worker's requests on it until the call
    /// returns. If it does not, ends the process.
    ///
    /// - Parameter giveBack: Whether the channel was acquired for a call of the host, so that this thread can leave it
    ///   to another thread. Otherwise, this is the thread that serves the channel.
    private func awaitReturn(_ link: WorkerLink, _ channel: UInt32, giveBack: Bool) {
        let lost = link.takeLost(channel)
        if lost.isSerial { lostSerialCalls.add(1, ordering: .acquiringAndReleasing) }
        let wait: @Sendable () -> Void = {
            if self.refuseRequests(link, channel, lost, answersLast: !giveBack), giveBack { link.giveBack(channel) }
            if lost.isSerial { self.lostSerialCalls.subtract(1, ordering: .acquiringAndReleasing) }
            self.lateCalls.end()
        }
        guard giveBack else { return wait() }
        if DetachedThread.tryStart("pluginhost.late", wait) != 0 {
            doom("It did not return from a call in time, and no thread can be started to wait for it.")
        }
    }

    /// - Returns: Whether the worker has returned from all calls.
    private func refuseRequests(_ link: WorkerLink, _ channel: UInt32, _ lost: WorkerLink.Lost, answersLast: Bool)
        -> Bool
    {
        let end = lost.limit.adding(settings.isolation.hangGrace.nanoseconds)
        var running = lost.factories[...]
        while let factory = running.first {
            var message = plugin_wire_message()
            switch link.receive(channel, until: end, &message) {
            case .arrived: break
            case .ended: return false
            case .invalid:
                doom("Its process sent an invalid message, and was ended.")
                return false
            case .late:
                doomForHang()
                return false
            }
            if message.kind == PLUGIN_WIRE_RETURN.rawValue {
                // Nothing uses the instance that the call has made.
                if let factory, message.a != 0 { unmake(message.a, factory) }
                plugin_wire_dispose(&message)
                running.removeFirst()
                guard !running.isEmpty || answersLast else { return true }
                // The request of the worker within which this call was made ends with the call.
                var answer = PluginError.cancelledWithCall.answer
                _ = send(answer, link, channel)
                plugin_wire_dispose(&answer)
            } else if !answer(&message, link, channel, isCancelled: true) {
                doom("Its process sent an invalid message, and was ended.")
                return false
            } else if monotonicNow() >= end {
                doomForHang()
                return false
            }
        }
        return true
    }

    /// Makes the worker destroy an instance, and does not wait until it has done so.
    func unmake(_ instance: UInt64, _ factory: UInt64) {
        var message = plugin_wire_message()
        (message.kind, message.a, message.token) = (PLUGIN_WIRE_UNMAKE.rawValue, factory, instance)
        postOverSocket(message)
    }

    private func doomForHang() {
        doom(
            "It did not return from a call within \(settings.isolation.callTimeout) and another "
                + "\(settings.isolation.hangGrace), and its process was ended.")
    }

    // MARK: One-way messages

    /// The nesting of requests up to which one-way messages are sent within a channel. While a worker handles such a
    /// message, it may send a request that leads to the next one, without end.
    private static let nestingMax = 32

    func post(_ kind: plugin_wire_kind, _ number: UInt64, _ detail: Int64 = 0) {
        var message = plugin_wire_message()
        (message.kind, message.a, message.b) = (kind.rawValue, number, detail)
        post(message)
    }

    /// Sends a message, whose values are borrowed. On a thread that serves a request of the worker, waits until the
    /// thread that has made the request has handled the message: as in one process, an outcome arrives before the
    /// function that has caused it returns, unless too many requests are nested.
    func post(_ message: plugin_wire_message) {
        if message.kind != PLUGIN_WIRE_SERVE.rawValue, let link, let channel = link.channelOfThread,
            !link.isLost(channel), WorkerLink.nesting <= Self.nestingMax
        {
            var received = message
            switch exchange(&received, link, channel, 0) {
            case .returned: plugin_wire_dispose(&received)
            case .tooLarge, .noRoom: postOverSocket(message)  // There it fits.
            default: break
            }
        } else {
            postOverSocket(message)
        }
    }

    /// Sends a message, whose values are borrowed, without waiting for the worker.
    ///
    /// - Parameter descriptor: A descriptor to be sent with it, and then closed; -1 for none.
    func postOverSocket(_ message: plugin_wire_message, _ descriptor: Int32 = -1) {
        if message.room != 0, let link { handOver(message.room, link) }
        switch outbox.post(message, descriptor) {
        case .sent: break
        case .waits: WorkerSupervisor.shared.wake()
        case .full: doomForFullOutbox()
        }
    }

    /// Sends what waits.
    func flush() { if outbox.flush() == .full { doomForFullOutbox() } }

    private func doomForFullOutbox() { doom("It did not take the host's messages, and its process was ended.") }
}

extension Int64 {
    /// The sum; the greatest number if that is too large.
    func adding(_ other: Int64) -> Int64 {
        let (sum, isTooLarge) = addingReportingOverflow(other)
        return isTooLarge ? .max : sum
    }
}
