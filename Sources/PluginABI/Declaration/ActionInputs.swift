/// The inputs of an action, taken together, so that each kind of closure is dealt with in one place.
@usableFromInline protocol ActionInputs<Values>: Sendable {
    /// What the closure gets.
    associatedtype Values
    /// Whether one of them carries the reply.
    static var isReply: Bool { get }
    /// What the manifest says about each; nil for what is not a parameter.
    var declarations: [ParameterDeclaration?] { get }
    /// Takes them from a call, in declared order.
    static func read(from inputs: inout InvocationInputs) throws(PluginError) -> Values
}

extension Action {
    // Synchronous actions make the closure that runs them where the number of inputs is known, so that it holds theirs as
    // it is: one that takes the inputs together would be another closure around it.

    /// A synchronous action with a result.
    @inlinable @inline(__always) init<Inputs: ActionInputs>(
        _ name: String, _ inputs: Inputs, _ resultKind: Value.Kind,
        _ run: (Inputs.Type) -> @Sendable (Invocation) throws -> Void
    ) { self.init(name, inputs.declarations, resultKind, isAsync: false, run(Inputs.self)) }

    /// A synchronous action without a result, or one that replies through a handle.
    @inlinable @inline(__always) init<Inputs: ActionInputs>(
        _ name: String, _ inputs: Inputs, _ run: (Inputs.Type) -> @Sendable (Invocation) throws -> Void
    ) { self.init(name, inputs.declarations, .null, isAsync: Inputs.isReply, run(Inputs.self)) }

    // The inputs are read before the task begins: it may change its executor first, when the action has long returned.

    /// An asynchronous action with a result.
    @inlinable @inline(__always) init<Inputs: ActionInputs, R: ActionResult>(
        _ name: String, _ inputs: Inputs, awaiting body: @escaping @Sendable (Inputs.Values) async throws -> R
    ) where Inputs.Values: Sendable {
        self.init(name, inputs.declarations, R.resultKind, isAsync: true) { call in
            var inputs = call.inputs
            let values = try Inputs.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.give { try await body(values) } })
        }
    }

    /// An asynchronous action without a result.
    @inlinable @inline(__always) init<Inputs: ActionInputs>(
        _ name: String, _ inputs: Inputs, awaiting body: @escaping @Sendable (Inputs.Values) async throws -> Void
    ) where Inputs.Values: Sendable {
        self.init(name, inputs.declarations, .null, isAsync: true) { call in
            var inputs = call.inputs
            let values = try Inputs.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.giveNull { try await body(values) } })
        }
    }
}

extension Invocation {
    /// Replies with what a closure returns.
    @inlinable @inline(__always) func resolve<Inputs: ActionInputs>(
        _ type: Inputs.Type, _ body: (Inputs.Values) throws -> some ActionResult
    ) throws {
        var inputs = self.inputs
        resolve(try body(Inputs.read(from: &inputs)))
    }

    /// Runs a closure that returns nothing, and replies unless it does so itself.
    @inlinable @inline(__always) func run<Inputs: ActionInputs>(
        _ type: Inputs.Type, _ body: (Inputs.Values) throws -> Void
    ) throws {
        var inputs = self.inputs
        try body(Inputs.read(from: &inputs))
        inputs.resolve()
    }
}

// MARK: For each number

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
