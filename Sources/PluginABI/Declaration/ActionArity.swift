// The initialisers of Action, one for each number of inputs and each kind of closure. Fixed arity instead of parameter
// packs: packs are left generic and cost several hundred nanoseconds a call.

// MARK: Synchronous actions with a result

extension Action {
    /// A synchronous action: the closure takes no input and returns the result.
    @inlinable public init<R: ActionResult>(
        _ name: String,
        _ body: @escaping @Sendable () throws -> R
    ) {
        self.init(name, [], R.resultKind, isAsync: false) { call in
            call.resolve(try body())
        }
    }

    /// A synchronous action: the closure takes one input and returns the result.
    @inlinable public init<S1: ActionInput, R: ActionResult>(
        _ name: String, _ s1: S1,
        _ body: @escaping @Sendable (S1.Output) throws -> R
    ) where S1.Instance == Instance {
        self.init(name, [s1.declaration], R.resultKind, isAsync: false) { call in
            var inputs = call.inputs
            call.resolve(try body(S1.read(from: &inputs)))
        }
    }

    /// A synchronous action: the closure takes two inputs and returns the result.
    @inlinable public init<S1: ActionInput, S2: ActionInput, R: ActionResult>(
        _ name: String, _ s1: S1, _ s2: S2,
        _ body: @escaping @Sendable (S1.Output, S2.Output) throws -> R
    ) where S1.Instance == Instance, S2.Instance == Instance {
        self.init(name, [s1.declaration, s2.declaration], R.resultKind, isAsync: false) { call in
            var inputs = call.inputs
            call.resolve(try body(S1.read(from: &inputs), S2.read(from: &inputs)))
        }
    }

    /// A synchronous action: the closure takes three inputs and returns the result.
    @inlinable public init<S1: ActionInput, S2: ActionInput, S3: ActionInput, R: ActionResult>(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3,
        _ body: @escaping @Sendable (S1.Output, S2.Output, S3.Output) throws -> R
    ) where S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance {
        self.init(name, [s1.declaration, s2.declaration, s3.declaration], R.resultKind, isAsync: false) { call in
            var inputs = call.inputs
            call.resolve(
                try body(S1.read(from: &inputs), S2.read(from: &inputs), S3.read(from: &inputs)))
        }
    }

    /// A synchronous action: the closure takes four inputs and returns the result.
    @inlinable public init<S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, R: ActionResult>(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4,
        _ body: @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output) throws -> R
    ) where S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance {
        self.init(name, [s1.declaration, s2.declaration, s3.declaration, s4.declaration], R.resultKind, isAsync: false)
        { call in
            var inputs = call.inputs
            call.resolve(
                try body(S1.read(from: &inputs), S2.read(from: &inputs), S3.read(from: &inputs), S4.read(from: &inputs))
            )
        }
    }

    /// A synchronous action: the closure takes five inputs and returns the result.
    @inlinable
    public init<S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, S5: ActionInput, R: ActionResult>(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4, _ s5: S5,
        _ body: @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output, S5.Output) throws -> R
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S5.Instance == Instance
    {
        self.init(
            name, [s1.declaration, s2.declaration, s3.declaration, s4.declaration, s5.declaration], R.resultKind,
            isAsync: false
        ) { call in
            var inputs = call.inputs
            call.resolve(
                try body(
                    S1.read(from: &inputs), S2.read(from: &inputs), S3.read(from: &inputs), S4.read(from: &inputs),
                    S5.read(from: &inputs)))
        }
    }

    /// A synchronous action: the closure takes six inputs and returns the result.
    @inlinable
    public init<
        S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, S5: ActionInput, S6: ActionInput,
        R: ActionResult
    >(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4, _ s5: S5, _ s6: S6,
        _ body: @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output, S5.Output, S6.Output) throws -> R
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S5.Instance == Instance, S6.Instance == Instance
    {
        self.init(
            name, [s1.declaration, s2.declaration, s3.declaration, s4.declaration, s5.declaration, s6.declaration],
            R.resultKind, isAsync: false
        ) { call in
            var inputs = call.inputs
            call.resolve(
                try body(
                    S1.read(from: &inputs), S2.read(from: &inputs), S3.read(from: &inputs), S4.read(from: &inputs),
                    S5.read(from: &inputs), S6.read(from: &inputs)))
        }
    }

    /// A synchronous action: the closure takes seven inputs and returns the result.
    @inlinable
    public init<
        S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, S5: ActionInput, S6: ActionInput,
        S7: ActionInput, R: ActionResult
    >(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4, _ s5: S5, _ s6: S6, _ s7: S7,
        _ body:
            @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output, S5.Output, S6.Output, S7.Output) throws ->
            R
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S5.Instance == Instance, S6.Instance == Instance, S7.Instance == Instance
    {
        self.init(
            name,
            [
                s1.declaration, s2.declaration, s3.declaration, s4.declaration, s5.declaration, s6.declaration,
                s7.declaration,
            ], R.resultKind, isAsync: false
        ) { call in
            var inputs = call.inputs
            call.resolve(
                try body(
                    S1.read(from: &inputs), S2.read(from: &inputs), S3.read(from: &inputs), S4.read(from: &inputs),
                    S5.read(from: &inputs), S6.read(from: &inputs), S7.read(from: &inputs)))
        }
    }

    /// A synchronous action: the closure takes eight inputs and returns the result.
    @inlinable
    public init<
        S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, S5: ActionInput, S6: ActionInput,
        S7: ActionInput, S8: ActionInput, R: ActionResult
    >(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4, _ s5: S5, _ s6: S6, _ s7: S7, _ s8: S8,
        _ body:
            @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output, S5.Output, S6.Output, S7.Output, S8.Output)
            throws -> R
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S5.Instance == Instance, S6.Instance == Instance, S7.Instance == Instance, S8.Instance == Instance
    {
        self.init(
            name,
            [
                s1.declaration, s2.declaration, s3.declaration, s4.declaration, s5.declaration, s6.declaration,
                s7.declaration, s8.declaration,
            ], R.resultKind, isAsync: false
        ) { call in
            var inputs = call.inputs
            call.resolve(
                try body(
                    S1.read(from: &inputs), S2.read(from: &inputs), S3.read(from: &inputs), S4.read(from: &inputs),
                    S5.read(from: &inputs), S6.read(from: &inputs), S7.read(from: &inputs), S8.read(from: &inputs)))
        }
    }
}

// MARK: Synchronous actions without a result, and actions that reply through a handle

extension Action {
    /// A synchronous action: the closure takes no input and returns nothing.
    @inlinable public init(
        _ name: String,
        _ body: @escaping @Sendable () throws -> Void
    ) {
        self.init(name, [], .null, isAsync: false) { call in
            try body()
            call.resolve()
        }
    }

    /// A synchronous action: the closure takes one input and returns nothing. With `.reply` among its inputs it is
    /// asynchronous, and replies through the handle.
    @inlinable public init<S1: ActionInput>(
        _ name: String, _ s1: S1,
        _ body: @escaping @Sendable (S1.Output) throws -> Void
    ) where S1.Instance == Instance {
        self.init(name, [s1.declaration], .null, isAsync: S1.isReply) { call in
            var inputs = call.inputs
            try body(S1.read(from: &inputs))
            inputs.resolve()
        }
    }

    /// A synchronous action: the closure takes two inputs and returns nothing. With `.reply` among its inputs it is
    /// asynchronous, and replies through the handle.
    @inlinable public init<S1: ActionInput, S2: ActionInput>(
        _ name: String, _ s1: S1, _ s2: S2,
        _ body: @escaping @Sendable (S1.Output, S2.Output) throws -> Void
    ) where S1.Instance == Instance, S2.Instance == Instance {
        self.init(name, [s1.declaration, s2.declaration], .null, isAsync: S1.isReply || S2.isReply) { call in
            var inputs = call.inputs
            try body(S1.read(from: &inputs), S2.read(from: &inputs))
            inputs.resolve()
        }
    }

    /// A synchronous action: the closure takes three inputs and returns nothing. With `.reply` among its inputs it is
    /// asynchronous, and replies through the handle.
    @inlinable public init<S1: ActionInput, S2: ActionInput, S3: ActionInput>(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3,
        _ body: @escaping @Sendable (S1.Output, S2.Output, S3.Output) throws -> Void
    ) where S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance {
        self.init(
            name, [s1.declaration, s2.declaration, s3.declaration], .null,
            isAsync: S1.isReply || S2.isReply || S3.isReply
        ) { call in
            var inputs = call.inputs
            try body(S1.read(from: &inputs), S2.read(from: &inputs), S3.read(from: &inputs))
            inputs.resolve()
        }
    }

    /// A synchronous action: the closure takes four inputs and returns nothing. With `.reply` among its inputs it is
    /// asynchronous, and replies through the handle.
    @inlinable public init<S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput>(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4,
        _ body: @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output) throws -> Void
    ) where S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance {
        self.init(
            name, [s1.declaration, s2.declaration, s3.declaration, s4.declaration], .null,
            isAsync: S1.isReply || S2.isReply || S3.isReply || S4.isReply
        ) { call in
            var inputs = call.inputs
            try body(S1.read(from: &inputs), S2.read(from: &inputs), S3.read(from: &inputs), S4.read(from: &inputs))
            inputs.resolve()
        }
    }

    /// A synchronous action: the closure takes five inputs and returns nothing. With `.reply` among its inputs it is
    /// asynchronous, and replies through the handle.
    @inlinable public init<S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, S5: ActionInput>(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4, _ s5: S5,
        _ body: @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output, S5.Output) throws -> Void
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S5.Instance == Instance
    {
        self.init(
            name, [s1.declaration, s2.declaration, s3.declaration, s4.declaration, s5.declaration], .null,
            isAsync: S1.isReply || S2.isReply || S3.isReply || S4.isReply || S5.isReply
        ) { call in
            var inputs = call.inputs
            try body(
                S1.read(from: &inputs), S2.read(from: &inputs), S3.read(from: &inputs), S4.read(from: &inputs),
                S5.read(from: &inputs))
            inputs.resolve()
        }
    }

    /// A synchronous action: the closure takes six inputs and returns nothing. With `.reply` among its inputs it is
    /// asynchronous, and replies through the handle.
    @inlinable
    public init<S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, S5: ActionInput, S6: ActionInput>(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4, _ s5: S5, _ s6: S6,
        _ body: @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output, S5.Output, S6.Output) throws -> Void
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S5.Instance == Instance, S6.Instance == Instance
    {
        self.init(
            name, [s1.declaration, s2.declaration, s3.declaration, s4.declaration, s5.declaration, s6.declaration],
            .null, isAsync: S1.isReply || S2.isReply || S3.isReply || S4.isReply || S5.isReply || S6.isReply
        ) { call in
            var inputs = call.inputs
            try body(
                S1.read(from: &inputs), S2.read(from: &inputs), S3.read(from: &inputs), S4.read(from: &inputs),
                S5.read(from: &inputs), S6.read(from: &inputs))
            inputs.resolve()
        }
    }

    /// A synchronous action: the closure takes seven inputs and returns nothing. With `.reply` among its inputs it is
    /// asynchronous, and replies through the handle.
    @inlinable
    public init<
        S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, S5: ActionInput, S6: ActionInput,
        S7: ActionInput
    >(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4, _ s5: S5, _ s6: S6, _ s7: S7,
        _ body:
            @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output, S5.Output, S6.Output, S7.Output) throws ->
            Void
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S5.Instance == Instance, S6.Instance == Instance, S7.Instance == Instance
    {
        self.init(
            name,
            [
                s1.declaration, s2.declaration, s3.declaration, s4.declaration, s5.declaration, s6.declaration,
                s7.declaration,
            ], .null,
            isAsync: S1.isReply || S2.isReply || S3.isReply || S4.isReply || S5.isReply || S6.isReply || S7.isReply
        ) { call in
            var inputs = call.inputs
            try body(
                S1.read(from: &inputs), S2.read(from: &inputs), S3.read(from: &inputs), S4.read(from: &inputs),
                S5.read(from: &inputs), S6.read(from: &inputs), S7.read(from: &inputs))
            inputs.resolve()
        }
    }

    /// A synchronous action: the closure takes eight inputs and returns nothing. With `.reply` among its inputs it is
    /// asynchronous, and replies through the handle.
    @inlinable
    public init<
        S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, S5: ActionInput, S6: ActionInput,
        S7: ActionInput, S8: ActionInput
    >(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4, _ s5: S5, _ s6: S6, _ s7: S7, _ s8: S8,
        _ body:
            @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output, S5.Output, S6.Output, S7.Output, S8.Output)
            throws -> Void
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S5.Instance == Instance, S6.Instance == Instance, S7.Instance == Instance, S8.Instance == Instance
    {
        self.init(
            name,
            [
                s1.declaration, s2.declaration, s3.declaration, s4.declaration, s5.declaration, s6.declaration,
                s7.declaration, s8.declaration,
            ], .null,
            isAsync: S1.isReply || S2.isReply || S3.isReply || S4.isReply || S5.isReply || S6.isReply || S7.isReply
                || S8.isReply
        ) { call in
            var inputs = call.inputs
            try body(
                S1.read(from: &inputs), S2.read(from: &inputs), S3.read(from: &inputs), S4.read(from: &inputs),
                S5.read(from: &inputs), S6.read(from: &inputs), S7.read(from: &inputs), S8.read(from: &inputs))
            inputs.resolve()
        }
    }
}

// MARK: Asynchronous actions with a result

// The inputs are read before the task begins: it may change its executor first, when the action has long returned.

extension Action {
    /// An asynchronous action: the `async` closure takes no input and returns the result.
    @inlinable public init<R: ActionResult>(
        _ name: String,
        _ body: @escaping @Sendable () async throws -> R
    ) {
        self.init(name, [], R.resultKind, isAsync: true) { call in
            let reply = call.reply
            reply.comes(from: .immediate { await reply.give { try await body() } })
        }
    }

    /// An asynchronous action: the `async` closure takes one input and returns the result.
    @inlinable public init<S1: ActionInput, R: ActionResult>(
        _ name: String, _ s1: S1,
        _ body: @escaping @Sendable (S1.Output) async throws -> R
    ) where S1.Instance == Instance, S1.Output: Sendable {
        self.init(name, [s1.declaration], R.resultKind, isAsync: true) { call in
            var inputs = call.inputs
            let v1 = try S1.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.give { try await body(v1) } })
        }
    }

    /// An asynchronous action: the `async` closure takes two inputs and returns the result.
    @inlinable public init<S1: ActionInput, S2: ActionInput, R: ActionResult>(
        _ name: String, _ s1: S1, _ s2: S2,
        _ body: @escaping @Sendable (S1.Output, S2.Output) async throws -> R
    ) where S1.Instance == Instance, S2.Instance == Instance, S1.Output: Sendable, S2.Output: Sendable {
        self.init(name, [s1.declaration, s2.declaration], R.resultKind, isAsync: true) { call in
            var inputs = call.inputs
            let v1 = try S1.read(from: &inputs)
            let v2 = try S2.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.give { try await body(v1, v2) } })
        }
    }

    /// An asynchronous action: the `async` closure takes three inputs and returns the result.
    @inlinable public init<S1: ActionInput, S2: ActionInput, S3: ActionInput, R: ActionResult>(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3,
        _ body: @escaping @Sendable (S1.Output, S2.Output, S3.Output) async throws -> R
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S1.Output: Sendable,
        S2.Output: Sendable, S3.Output: Sendable
    {
        self.init(name, [s1.declaration, s2.declaration, s3.declaration], R.resultKind, isAsync: true) { call in
            var inputs = call.inputs
            let v1 = try S1.read(from: &inputs)
            let v2 = try S2.read(from: &inputs)
            let v3 = try S3.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.give { try await body(v1, v2, v3) } })
        }
    }

    /// An asynchronous action: the `async` closure takes four inputs and returns the result.
    @inlinable public init<S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, R: ActionResult>(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4,
        _ body: @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output) async throws -> R
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S1.Output: Sendable, S2.Output: Sendable, S3.Output: Sendable, S4.Output: Sendable
    {
        self.init(name, [s1.declaration, s2.declaration, s3.declaration, s4.declaration], R.resultKind, isAsync: true) {
            call in
            var inputs = call.inputs
            let v1 = try S1.read(from: &inputs)
            let v2 = try S2.read(from: &inputs)
            let v3 = try S3.read(from: &inputs)
            let v4 = try S4.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.give { try await body(v1, v2, v3, v4) } })
        }
    }

    /// An asynchronous action: the `async` closure takes five inputs and returns the result.
    @inlinable
    public init<S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, S5: ActionInput, R: ActionResult>(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4, _ s5: S5,
        _ body: @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output, S5.Output) async throws -> R
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S5.Instance == Instance, S1.Output: Sendable, S2.Output: Sendable, S3.Output: Sendable, S4.Output: Sendable,
        S5.Output: Sendable
    {
        self.init(
            name, [s1.declaration, s2.declaration, s3.declaration, s4.declaration, s5.declaration], R.resultKind,
            isAsync: true
        ) { call in
            var inputs = call.inputs
            let v1 = try S1.read(from: &inputs)
            let v2 = try S2.read(from: &inputs)
            let v3 = try S3.read(from: &inputs)
            let v4 = try S4.read(from: &inputs)
            let v5 = try S5.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.give { try await body(v1, v2, v3, v4, v5) } })
        }
    }

    /// An asynchronous action: the `async` closure takes six inputs and returns the result.
    @inlinable
    public init<
        S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, S5: ActionInput, S6: ActionInput,
        R: ActionResult
    >(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4, _ s5: S5, _ s6: S6,
        _ body: @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output, S5.Output, S6.Output) async throws -> R
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S5.Instance == Instance, S6.Instance == Instance, S1.Output: Sendable, S2.Output: Sendable, S3.Output: Sendable,
        S4.Output: Sendable, S5.Output: Sendable, S6.Output: Sendable
    {
        self.init(
            name, [s1.declaration, s2.declaration, s3.declaration, s4.declaration, s5.declaration, s6.declaration],
            R.resultKind, isAsync: true
        ) { call in
            var inputs = call.inputs
            let v1 = try S1.read(from: &inputs)
            let v2 = try S2.read(from: &inputs)
            let v3 = try S3.read(from: &inputs)
            let v4 = try S4.read(from: &inputs)
            let v5 = try S5.read(from: &inputs)
            let v6 = try S6.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.give { try await body(v1, v2, v3, v4, v5, v6) } })
        }
    }

    /// An asynchronous action: the `async` closure takes seven inputs and returns the result.
    @inlinable
    public init<
        S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, S5: ActionInput, S6: ActionInput,
        S7: ActionInput, R: ActionResult
    >(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4, _ s5: S5, _ s6: S6, _ s7: S7,
        _ body:
            @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output, S5.Output, S6.Output, S7.Output)
            async throws -> R
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S5.Instance == Instance, S6.Instance == Instance, S7.Instance == Instance, S1.Output: Sendable,
        S2.Output: Sendable, S3.Output: Sendable, S4.Output: Sendable, S5.Output: Sendable, S6.Output: Sendable,
        S7.Output: Sendable
    {
        self.init(
            name,
            [
                s1.declaration, s2.declaration, s3.declaration, s4.declaration, s5.declaration, s6.declaration,
                s7.declaration,
            ], R.resultKind, isAsync: true
        ) { call in
            var inputs = call.inputs
            let v1 = try S1.read(from: &inputs)
            let v2 = try S2.read(from: &inputs)
            let v3 = try S3.read(from: &inputs)
            let v4 = try S4.read(from: &inputs)
            let v5 = try S5.read(from: &inputs)
            let v6 = try S6.read(from: &inputs)
            let v7 = try S7.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.give { try await body(v1, v2, v3, v4, v5, v6, v7) } })
        }
    }

    /// An asynchronous action: the `async` closure takes eight inputs and returns the result.
    @inlinable
    public init<
        S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, S5: ActionInput, S6: ActionInput,
        S7: ActionInput, S8: ActionInput, R: ActionResult
    >(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4, _ s5: S5, _ s6: S6, _ s7: S7, _ s8: S8,
        _ body:
            @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output, S5.Output, S6.Output, S7.Output, S8.Output)
            async throws -> R
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S5.Instance == Instance, S6.Instance == Instance, S7.Instance == Instance, S8.Instance == Instance,
        S1.Output: Sendable, S2.Output: Sendable, S3.Output: Sendable, S4.Output: Sendable, S5.Output: Sendable,
        S6.Output: Sendable, S7.Output: Sendable, S8.Output: Sendable
    {
        self.init(
            name,
            [
                s1.declaration, s2.declaration, s3.declaration, s4.declaration, s5.declaration, s6.declaration,
                s7.declaration, s8.declaration,
            ], R.resultKind, isAsync: true
        ) { call in
            var inputs = call.inputs
            let v1 = try S1.read(from: &inputs)
            let v2 = try S2.read(from: &inputs)
            let v3 = try S3.read(from: &inputs)
            let v4 = try S4.read(from: &inputs)
            let v5 = try S5.read(from: &inputs)
            let v6 = try S6.read(from: &inputs)
            let v7 = try S7.read(from: &inputs)
            let v8 = try S8.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.give { try await body(v1, v2, v3, v4, v5, v6, v7, v8) } })
        }
    }
}

// MARK: Asynchronous actions without a result

extension Action {
    /// An asynchronous action: the `async` closure takes no input and returns nothing.
    @inlinable public init(
        _ name: String,
        _ body: @escaping @Sendable () async throws -> Void
    ) {
        self.init(name, [], .null, isAsync: true) { call in
            let reply = call.reply
            reply.comes(from: .immediate { await reply.giveNull { try await body() } })
        }
    }

    /// An asynchronous action: the `async` closure takes one input and returns nothing.
    @inlinable public init<S1: ActionInput>(
        _ name: String, _ s1: S1,
        _ body: @escaping @Sendable (S1.Output) async throws -> Void
    ) where S1.Instance == Instance, S1.Output: Sendable {
        self.init(name, [s1.declaration], .null, isAsync: true) { call in
            var inputs = call.inputs
            let v1 = try S1.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.giveNull { try await body(v1) } })
        }
    }

    /// An asynchronous action: the `async` closure takes two inputs and returns nothing.
    @inlinable public init<S1: ActionInput, S2: ActionInput>(
        _ name: String, _ s1: S1, _ s2: S2,
        _ body: @escaping @Sendable (S1.Output, S2.Output) async throws -> Void
    ) where S1.Instance == Instance, S2.Instance == Instance, S1.Output: Sendable, S2.Output: Sendable {
        self.init(name, [s1.declaration, s2.declaration], .null, isAsync: true) { call in
            var inputs = call.inputs
            let v1 = try S1.read(from: &inputs)
            let v2 = try S2.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.giveNull { try await body(v1, v2) } })
        }
    }

    /// An asynchronous action: the `async` closure takes three inputs and returns nothing.
    @inlinable public init<S1: ActionInput, S2: ActionInput, S3: ActionInput>(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3,
        _ body: @escaping @Sendable (S1.Output, S2.Output, S3.Output) async throws -> Void
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S1.Output: Sendable,
        S2.Output: Sendable, S3.Output: Sendable
    {
        self.init(name, [s1.declaration, s2.declaration, s3.declaration], .null, isAsync: true) { call in
            var inputs = call.inputs
            let v1 = try S1.read(from: &inputs)
            let v2 = try S2.read(from: &inputs)
            let v3 = try S3.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.giveNull { try await body(v1, v2, v3) } })
        }
    }

    /// An asynchronous action: the `async` closure takes four inputs and returns nothing.
    @inlinable public init<S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput>(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4,
        _ body: @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output) async throws -> Void
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S1.Output: Sendable, S2.Output: Sendable, S3.Output: Sendable, S4.Output: Sendable
    {
        self.init(name, [s1.declaration, s2.declaration, s3.declaration, s4.declaration], .null, isAsync: true) {
            call in
            var inputs = call.inputs
            let v1 = try S1.read(from: &inputs)
            let v2 = try S2.read(from: &inputs)
            let v3 = try S3.read(from: &inputs)
            let v4 = try S4.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.giveNull { try await body(v1, v2, v3, v4) } })
        }
    }

    /// An asynchronous action: the `async` closure takes five inputs and returns nothing.
    @inlinable public init<S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, S5: ActionInput>(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4, _ s5: S5,
        _ body: @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output, S5.Output) async throws -> Void
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S5.Instance == Instance, S1.Output: Sendable, S2.Output: Sendable, S3.Output: Sendable, S4.Output: Sendable,
        S5.Output: Sendable
    {
        self.init(
            name, [s1.declaration, s2.declaration, s3.declaration, s4.declaration, s5.declaration], .null, isAsync: true
        ) { call in
            var inputs = call.inputs
            let v1 = try S1.read(from: &inputs)
            let v2 = try S2.read(from: &inputs)
            let v3 = try S3.read(from: &inputs)
            let v4 = try S4.read(from: &inputs)
            let v5 = try S5.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.giveNull { try await body(v1, v2, v3, v4, v5) } })
        }
    }

    /// An asynchronous action: the `async` closure takes six inputs and returns nothing.
    @inlinable
    public init<S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, S5: ActionInput, S6: ActionInput>(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4, _ s5: S5, _ s6: S6,
        _ body:
            @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output, S5.Output, S6.Output) async throws -> Void
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S5.Instance == Instance, S6.Instance == Instance, S1.Output: Sendable, S2.Output: Sendable, S3.Output: Sendable,
        S4.Output: Sendable, S5.Output: Sendable, S6.Output: Sendable
    {
        self.init(
            name, [s1.declaration, s2.declaration, s3.declaration, s4.declaration, s5.declaration, s6.declaration],
            .null, isAsync: true
        ) { call in
            var inputs = call.inputs
            let v1 = try S1.read(from: &inputs)
            let v2 = try S2.read(from: &inputs)
            let v3 = try S3.read(from: &inputs)
            let v4 = try S4.read(from: &inputs)
            let v5 = try S5.read(from: &inputs)
            let v6 = try S6.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.giveNull { try await body(v1, v2, v3, v4, v5, v6) } })
        }
    }

    /// An asynchronous action: the `async` closure takes seven inputs and returns nothing.
    @inlinable
    public init<
        S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, S5: ActionInput, S6: ActionInput,
        S7: ActionInput
    >(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4, _ s5: S5, _ s6: S6, _ s7: S7,
        _ body:
            @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output, S5.Output, S6.Output, S7.Output)
            async throws -> Void
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S5.Instance == Instance, S6.Instance == Instance, S7.Instance == Instance, S1.Output: Sendable,
        S2.Output: Sendable, S3.Output: Sendable, S4.Output: Sendable, S5.Output: Sendable, S6.Output: Sendable,
        S7.Output: Sendable
    {
        self.init(
            name,
            [
                s1.declaration, s2.declaration, s3.declaration, s4.declaration, s5.declaration, s6.declaration,
                s7.declaration,
            ], .null, isAsync: true
        ) { call in
            var inputs = call.inputs
            let v1 = try S1.read(from: &inputs)
            let v2 = try S2.read(from: &inputs)
            let v3 = try S3.read(from: &inputs)
            let v4 = try S4.read(from: &inputs)
            let v5 = try S5.read(from: &inputs)
            let v6 = try S6.read(from: &inputs)
            let v7 = try S7.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.giveNull { try await body(v1, v2, v3, v4, v5, v6, v7) } })
        }
    }

    /// An asynchronous action: the `async` closure takes eight inputs and returns nothing.
    @inlinable
    public init<
        S1: ActionInput, S2: ActionInput, S3: ActionInput, S4: ActionInput, S5: ActionInput, S6: ActionInput,
        S7: ActionInput, S8: ActionInput
    >(
        _ name: String, _ s1: S1, _ s2: S2, _ s3: S3, _ s4: S4, _ s5: S5, _ s6: S6, _ s7: S7, _ s8: S8,
        _ body:
            @escaping @Sendable (S1.Output, S2.Output, S3.Output, S4.Output, S5.Output, S6.Output, S7.Output, S8.Output)
            async throws -> Void
    )
    where
        S1.Instance == Instance, S2.Instance == Instance, S3.Instance == Instance, S4.Instance == Instance,
        S5.Instance == Instance, S6.Instance == Instance, S7.Instance == Instance, S8.Instance == Instance,
        S1.Output: Sendable, S2.Output: Sendable, S3.Output: Sendable, S4.Output: Sendable, S5.Output: Sendable,
        S6.Output: Sendable, S7.Output: Sendable, S8.Output: Sendable
    {
        self.init(
            name,
            [
                s1.declaration, s2.declaration, s3.declaration, s4.declaration, s5.declaration, s6.declaration,
                s7.declaration, s8.declaration,
            ], .null, isAsync: true
        ) { call in
            var inputs = call.inputs
            let v1 = try S1.read(from: &inputs)
            let v2 = try S2.read(from: &inputs)
            let v3 = try S3.read(from: &inputs)
            let v4 = try S4.read(from: &inputs)
            let v5 = try S5.read(from: &inputs)
            let v6 = try S6.read(from: &inputs)
            let v7 = try S7.read(from: &inputs)
            let v8 = try S8.read(from: &inputs)
            let reply = call.reply
            reply.comes(from: .immediate { await reply.giveNull { try await body(v1, v2, v3, v4, v5, v6, v7, v8) } })
        }
    }
}
