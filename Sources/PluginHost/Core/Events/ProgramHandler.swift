/// A closure of the program that handles an argument, such as an event, synchronously or asynchronously.
enum ProgramHandler<Argument, Reply>: Sendable {
    case synchronous(@Sendable (Argument) throws -> Reply)
    case asynchronous(@Sendable (Argument) async throws -> Reply)

    var isAsync: Bool { if case .asynchronous = self { true } else { false } }
}
