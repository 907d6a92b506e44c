import type { EIP1193EventMap } from 'viem'

type EventName = keyof EIP1193EventMap

export type Emitter = {
  on<Name extends EventName>(name: Name, listener: EIP1193EventMap[Name]): void
  removeListener<Name extends EventName>(name: Name, listener: EIP1193EventMap[Name]): void
  emit<Name extends EventName>(name: Name, ...parameters: Parameters<EIP1193EventMap[Name]>): void
}

/** Listeners are called in order, after the work that is under way; one that throws disturbs neither it nor the others. */
export function createEmitter(): Emitter {
  const listeners = new Map<EventName, unknown[]>()
  const listed = (name: EventName) => listeners.get(name) ?? []
  return {
    on(name, listener) {
      listeners.set(name, [...listed(name), listener])
    },
    removeListener(name, listener) {
      const index = listed(name).indexOf(listener)
      if (index >= 0) listeners.set(name, listed(name).toSpliced(index, 1))
    },
    emit(name, ...parameters) {
      for (const listener of listed(name)) {
        queueMicrotask(() => (listener as (...values: typeof parameters) => void)(...parameters))
      }
    },
  }
}
