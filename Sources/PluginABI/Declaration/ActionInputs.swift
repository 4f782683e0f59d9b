/// All inputs of an action. With this type, the code for each kind of closure is independent of the number of inputs.
@usableFromInline protocol ActionInputs<Values>: Sendable {
    /// The values that the closure receives.
    associatedtype Values
    /// Whether one of the inputs is the reply handle.
    static var isReply: Bool { get }
    /// The declaration of each input; `nil` for an input that is not a parameter.
    var declarations: [ParameterDeclaration?] { get }
    /// Reads the inputs of a call, in declared order.
    static func read(from inputs: inout InvocationInputs) throws(PluginError) -> Values
}

extension Action {
    // The closure that runs a synchronous action is made where the number of inputs is known, so that it captures the
    // closure of the module author directly. Made here, it would capture another closure around that one.

    /// Makes a synchronous action with a result.
    @inlinable @inline(__always) init<Inputs: ActionInputs, R: ActionResult>(
        _ name: String, _ inputs: Inputs, _ result: R.Type,
        _ run: (Inputs.Type) -> @Sendable (Invocation) throws -> Void
    ) { self.init(name, inputs.declarations, result, isAsync: false, run(Inputs.self)) }

    /// Makes a synchronous action without a result, or one that replies through a handle.
    @inlinable @inline(__always) init<Inputs: ActionInputs>(
        _ name: String, _ inputs: Inputs, _ run: (Inputs.Type) -> @Sendable (Invocation) throws -> Void
    ) { self.init(name, inputs.declarations, .null, isAsync: Inputs.isReply, run(Inputs.self)) }

    // The inputs are read before the task starts: it may first switch to another executor, and by then the action has
    // returned.

    /// Makes an asynchronous action with a result.
    @inlinable @inline(__always) init<Inputs: ActionInputs, R: ActionResult>(
        _ name: String, _ inputs: Inputs, awaiting body: @escaping @Sendable (Inputs.Values) async throws -> R
    ) where Inputs.Values: Sendable {
        self.init(name, inputs.declarations, R.self, isAsync: true) { call in
            var inputs = call.inputs
            let values = try inputs.read(Inputs.self)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.give { try await body(values) } })
        }
    }

    /// Makes an asynchronous action without a result.
    @inlinable @inline(__always) init<Inputs: ActionInputs>(
        _ name: String, _ inputs: Inputs, awaiting body: @escaping @Sendable (Inputs.Values) async throws -> Void
    ) where Inputs.Values: Sendable {
        self.init(name, inputs.declarations, .null, isAsync: true) { call in
            var inputs = call.inputs
            let values = try inputs.read(Inputs.self)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.giveNull { try await body(values) } })
        }
    }
}

extension InvocationInputs {
    /// Reads all inputs; the error names the argument that is not of the declared type.
    @inlinable @inline(__always) mutating func read<Inputs: ActionInputs>(_ type: Inputs.Type) throws -> Inputs.Values {
        do throws(PluginError) {
            let values = try Inputs.read(from: &self)
            if Inputs.isReply { reply?.handOut() }
            return values
        } catch { throw failure(error) }
    }
}

extension Invocation {
    /// Runs a closure and replies with its result.
    @inlinable @inline(__always) func resolve<Inputs: ActionInputs>(
        _ type: Inputs.Type, _ body: (Inputs.Values) throws -> some ActionResult
    ) throws {
        var inputs = self.inputs
        resolve(try body(inputs.read(Inputs.self)))
    }

    /// Runs a closure that returns nothing, and replies unless the closure does so through a handle.
    @inlinable @inline(__always) func run<Inputs: ActionInputs>(
        _ type: Inputs.Type, _ body: (Inputs.Values) throws -> Void
    ) throws {
        var inputs = self.inputs
        try body(inputs.read(Inputs.self))
        if !Inputs.isReply { resolve() }
    }
}

// MARK: One type for each number of inputs

@usableFromInline struct NoInputs: ActionInputs {
    @inlinable init() {}
    @inlinable static var isReply: Bool { false }
    @inlinable var declarations: [ParameterDeclaration?] { [] }
    @inlinable @inline(__always) static func read(from inputs: inout InvocationInputs) {}
}

@usableFromInline struct Inputs1<A: ActionInput>: ActionInputs {
    @usableFromInline typealias Values = A.Output
    @usableFromInline let declarations: [ParameterDeclaration?]
    @inlinable init(_ a: A) { declarations = [a.declaration] }
    @inlinable static var isReply: Bool { A.isReply }
    @inlinable @inline(__always) static func read(from inputs: inout InvocationInputs) throws(PluginError) -> Values {
        try A.read(from: &inputs)
    }
}

@usableFromInline struct Inputs2<A: ActionInput, B: ActionInput>: ActionInputs {
    @usableFromInline typealias Values = (A.Output, B.Output)
    @usableFromInline let declarations: [ParameterDeclaration?]
    @inlinable init(_ a: A, _ b: B) { declarations = [a.declaration, b.declaration] }
    @inlinable static var isReply: Bool { A.isReply || B.isReply }
    @inlinable @inline(__always) static func read(from inputs: inout InvocationInputs) throws(PluginError) -> Values {
        (try A.read(from: &inputs), try B.read(from: &inputs))
    }
}

@usableFromInline struct Inputs3<A: ActionInput, B: ActionInput, C: ActionInput>: ActionInputs {
    @usableFromInline typealias Values = (A.Output, B.Output, C.Output)
    @usableFromInline let declarations: [ParameterDeclaration?]
    @inlinable init(_ a: A, _ b: B, _ c: C) { declarations = [a.declaration, b.declaration, c.declaration] }
    @inlinable static var isReply: Bool { A.isReply || B.isReply || C.isReply }
    @inlinable @inline(__always) static func read(from inputs: inout InvocationInputs) throws(PluginError) -> Values {
        (try A.read(from: &inputs), try B.read(from: &inputs), try C.read(from: &inputs))
    }
}

@usableFromInline struct Inputs4<A: ActionInput, B: ActionInput, C: ActionInput, D: ActionInput>: ActionInputs {
    @usableFromInline typealias Values = (A.Output, B.Output, C.Output, D.Output)
    @usableFromInline let declarations: [ParameterDeclaration?]
    @inlinable init(_ a: A, _ b: B, _ c: C, _ d: D) {
        declarations = [a.declaration, b.declaration, c.declaration, d.declaration]
    }
    @inlinable static var isReply: Bool { A.isReply || B.isReply || C.isReply || D.isReply }
    @inlinable @inline(__always) static func read(from inputs: inout InvocationInputs) throws(PluginError) -> Values {
        (try A.read(from: &inputs), try B.read(from: &inputs), try C.read(from: &inputs), try D.read(from: &inputs))
    }
}

@usableFromInline
struct Inputs5<A: ActionInput, B: ActionInput, C: ActionInput, D: ActionInput, E: ActionInput>: ActionInputs {
    @usableFromInline typealias Values = (A.Output, B.Output, C.Output, D.Output, E.Output)
    @usableFromInline let declarations: [ParameterDeclaration?]
    @inlinable init(_ a: A, _ b: B, _ c: C, _ d: D, _ e: E) {
        declarations = [a.declaration, b.declaration, c.declaration, d.declaration, e.declaration]
    }
    @inlinable static var isReply: Bool { A.isReply || B.isReply || C.isReply || D.isReply || E.isReply }
    @inlinable @inline(__always) static func read(from inputs: inout InvocationInputs) throws(PluginError) -> Values {
        (
            try A.read(from: &inputs), try B.read(from: &inputs), try C.read(from: &inputs), try D.read(from: &inputs),
            try E.read(from: &inputs)
        )
    }
}

@usableFromInline
struct Inputs6<A: ActionInput, B: ActionInput, C: ActionInput, D: ActionInput, E: ActionInput, F: ActionInput>:
    ActionInputs
{
    @usableFromInline typealias Values = (A.Output, B.Output, C.Output, D.Output, E.Output, F.Output)
    @usableFromInline let declarations: [ParameterDeclaration?]
    @inlinable init(_ a: A, _ b: B, _ c: C, _ d: D, _ e: E, _ f: F) {
        declarations = [a.declaration, b.declaration, c.declaration, d.declaration, e.declaration, f.declaration]
    }
    @inlinable static var isReply: Bool { A.isReply || B.isReply || C.isReply || D.isReply || E.isReply || F.isReply }
    @inlinable @inline(__always) static func read(from inputs: inout InvocationInputs) throws(PluginError) -> Values {
        (
            try A.read(from: &inputs), try B.read(from: &inputs), try C.read(from: &inputs), try D.read(from: &inputs),
            try E.read(from: &inputs), try F.read(from: &inputs)
        )
    }
}

@usableFromInline
struct Inputs7<
    A: ActionInput, B: ActionInput, C: ActionInput, D: ActionInput, E: ActionInput, F: ActionInput, G: ActionInput
>: ActionInputs {
    @usableFromInline typealias Values = (A.Output, B.Output, C.Output, D.Output, E.Output, F.Output, G.Output)
    @usableFromInline let declarations: [ParameterDeclaration?]
    @inlinable init(_ a: A, _ b: B, _ c: C, _ d: D, _ e: E, _ f: F, _ g: G) {
        declarations = [
            a.declaration, b.declaration, c.declaration, d.declaration, e.declaration, f.declaration, g.declaration,
        ]
    }
    @inlinable static var isReply: Bool {
        A.isReply || B.isReply || C.isReply || D.isReply || E.isReply || F.isReply || G.isReply
    }
    @inlinable @inline(__always) static func read(from inputs: inout InvocationInputs) throws(PluginError) -> Values {
        (
            try A.read(from: &inputs), try B.read(from: &inputs), try C.read(from: &inputs), try D.read(from: &inputs),
            try E.read(from: &inputs), try F.read(from: &inputs), try G.read(from: &inputs)
        )
    }
}

@usableFromInline
struct Inputs8<
    A: ActionInput, B: ActionInput, C: ActionInput, D: ActionInput, E: ActionInput, F: ActionInput, G: ActionInput,
    H: ActionInput
>: ActionInputs {
    @usableFromInline typealias Values = (
        A.Output, B.Output, C.Output, D.Output, E.Output, F.Output, G.Output, H.Output
    )
    @usableFromInline let declarations: [ParameterDeclaration?]
    @inlinable init(_ a: A, _ b: B, _ c: C, _ d: D, _ e: E, _ f: F, _ g: G, _ h: H) {
        declarations = [
            a.declaration, b.declaration, c.declaration, d.declaration, e.declaration, f.declaration, g.declaration,
            h.declaration,
        ]
    }
    @inlinable static var isReply: Bool {
        A.isReply || B.isReply || C.isReply || D.isReply || E.isReply || F.isReply || G.isReply || H.isReply
    }
    @inlinable @inline(__always) static func read(from inputs: inout InvocationInputs) throws(PluginError) -> Values {
        (
            try A.read(from: &inputs), try B.read(from: &inputs), try C.read(from: &inputs), try D.read(from: &inputs),
            try E.read(from: &inputs), try F.read(from: &inputs), try G.read(from: &inputs), try H.read(from: &inputs)
        )
    }
}
