// Tables whose keys strangers write.

/** `table[key]`, but only an entry of its own: "__proto__" and "constructor" are words like others. */
export function lookup<V>(table: Readonly<Record<string, V>>, key: string): V | undefined {
    return Object.hasOwn(table, key) ? table[key] : undefined;
}
