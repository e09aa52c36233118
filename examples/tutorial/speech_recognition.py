"""Speech recognition: a model whose output holds an object that torch.export does not know.

Whisper returns its key and value cache, an `EncoderDecoderCache`, with the logits. Both modes of torch 2.13
fail on that class. A transcription in one pass needs no cache: `use_cache=False` leaves it out.
"""

from __future__ import annotations

import torch
from torch import nn
from transformers import WhisperConfig, WhisperForConditionalGeneration
from transformers.modeling_outputs import Seq2SeqLMOutput

CONFIG = WhisperConfig(
    vocab_size=128,
    num_mel_bins=16,
    d_model=32,
    encoder_layers=2,
    encoder_attention_heads=2,
    encoder_ffn_dim=64,
    decoder_layers=2,
    decoder_attention_heads=2,
    decoder_ffn_dim=64,
    max_source_positions=50,
    max_target_positions=32,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=1,
)


class Transcriber(nn.Module):
    """A tiny Whisper with random weights: spectrograms and words so far in, logits of the next word out."""

    def __init__(self) -> None:
        super().__init__()
        self.whisper = WhisperForConditionalGeneration(CONFIG)

    def forward(self, spectrogram: torch.Tensor, words: torch.Tensor) -> Seq2SeqLMOutput:
        return self.whisper(spectrogram, decoder_input_ids=words)


if __name__ == "__main__":
    spectrogram = torch.randn(2, 16, 100)
    words = torch.ones(2, 5, dtype=torch.long)
    print(torch.export.export(Transcriber().eval(), (spectrogram, words)))
