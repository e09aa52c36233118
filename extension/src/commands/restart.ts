// ExportLens: Restart Server.

import type { Command } from './command';

export const restart: Command = {
  id: 'exportlens.restart',
  async run({ session }) {
    await session.restart();
  },
};
