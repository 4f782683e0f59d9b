// The work of the actions without a host: the floors. The benchmarks find these functions with dlsym.

@_cdecl("bench_one")
public func one(_ n: Int) -> Int { n &+ 1 }

@_cdecl("bench_three")
public func three(_ text: UnsafePointer<UInt8>, _ count: Int, _ n: Int, _ word: UnsafePointer<UInt8>, _ size: Int)
    -> Int
{
    count &+ n &+ size
}

/// An asynchronous function behind a C pointer.
@_cdecl("bench_later")
public func later(
    _ n: Int, _ data: UnsafeMutableRawPointer, _ reply: @Sendable @convention(c) (UnsafeMutableRawPointer, Int) -> Void
) {
    nonisolated(unsafe) let data = data  // Belongs to the caller, which keeps it until it gets the result.
    Task.immediate { reply(data, await increment(n)) }
}

@inline(never)
private func increment(_ n: Int) async -> Int { n &+ 1 }
