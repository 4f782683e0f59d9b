import Foundation
import GRPCCore
import GRPCNIOTransportHTTP2Posix

/// One unary call after the other over a Unix socket, to a process that returns the number plus one.
///
///     Echo FOLDER           starts the other process, measures, and prints the figure
///     Echo --serve SOCKET   is that process; ends with its input
@main
struct Echo {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        switch (arguments.first, arguments.last) {
        case ("--serve", let socket?) where arguments.count == 2: try await serve(socket)
        case (let folder?, _) where arguments.count == 1: try await measure("\(folder)/grpc.socket")
        default:
            FileHandle.standardError.write(Data("Usage: Echo FOLDER\n".utf8))
            exit(64)
        }
    }

    static let method = MethodDescriptor(fullyQualifiedService: "bench.Plain", method: "one", type: .unary)

    private static func serve(_ socket: String) async throws {
        Thread.detachNewThread {
            var byte: UInt8 = 0
            while read(STDIN_FILENO, &byte, 1) > 0 {}
            exit(0)
        }
        let server = GRPCServer(
            transport: .http2NIOPosix(address: .unixDomainSocket(path: socket), transportSecurity: .plaintext),
            services: [Plain()])
        try await server.serve()
    }

    private static func measure(_ socket: String) async throws {
        let server = Process()
        server.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        server.arguments = ["--serve", socket]
        let input = Pipe()  // Closed when this process ends, however it does.
        server.standardInput = input
        try server.run()
        defer { try? input.fileHandleForWriting.close() }
        while !FileManager.default.fileExists(atPath: socket), server.isRunning { usleep(10_000) }
        try await withGRPCClient(
            transport: .http2NIOPosix(target: .unixDomainSocket(path: socket), transportSecurity: .plaintext)
        ) { client in
            var count = 1
            while case let time = try await time(count, client), time < .milliseconds(30) { count *= 2 }
            var times: [Duration] = []
            for _ in 0..<9 { times.append(try await time(count, client) / count) }
            let median = times.sorted()[4] / .nanoseconds(1)
            print("isolated\tgRPC over a Unix socket\t-\t\(median)")
        }
    }

    private static func time(
        _ count: Int, _ client: GRPCClient<HTTP2ClientTransport.Posix>
    ) async throws -> Duration {
        let start = ContinuousClock.now
        for number in 0..<count {
            let result = try await client.unary(
                request: ClientRequest(message: number), descriptor: method, serializer: Number(),
                deserializer: Number(), options: .defaults
            ) { try $0.message }
            precondition(result == number + 1)
        }
        return .now - start
    }
}

private struct Plain: RegistrableRPCService {
    func registerMethods(with router: inout RPCRouter<some ServerTransport>) {
        router.registerHandler(forMethod: Echo.method, deserializer: Number(), serializer: Number()) { request, _ in
            let number = try await ServerRequest(stream: request).message
            return StreamingServerResponse(single: ServerResponse(message: number + 1))
        }
    }
}

/// A number in eight bytes: less work than protobuf has.
private struct Number: MessageSerializer, MessageDeserializer {
    func serialize<Bytes: GRPCContiguousBytes>(_ number: Int) -> Bytes {
        withUnsafeBytes(of: number.littleEndian) { bytes in Bytes(bytes) }
    }

    func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> Int {
        try bytes.withUnsafeBytes { bytes in
            guard bytes.count == 8 else { throw RPCError(code: .invalidArgument, message: "A number has 8 bytes.") }
            return Int(littleEndian: bytes.loadUnaligned(as: Int.self))
        }
    }
}
