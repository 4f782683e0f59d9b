import PluginABI
import Synchronization

/// Returns bytes of a size. They are made once, so that only passing them is measured.
func payload(_ count: Int) -> Bytes {
    payloads.withLock { payloads in
        if let payload = payloads[count] { return payload }
        let payload = Bytes(count: count) { memory in memory.initializeMemory(as: UInt8.self, repeating: 7) }
        payloads[count] = payload
        return payload
    }
}

private let payloads = Mutex<[Int: Bytes]>([:])
